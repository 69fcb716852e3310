#pragma once

#include <string>
#include <vector>

#include "plan/problem.h"
#include "plan/profile.h"

namespace penstock::report {

/// Why a tensor (or what an op makes) is kept, swapped or computed again: its size, its uses, the gap between
/// them, what the plan does with it and when, and what the other ways would cost. A line each. Throws
/// UserError that names similar ones if the graph has nothing of that name.
std::vector<std::string> explain(const plan::Problem& problem, const plan::Plan& plan,
                                 const plan::Profile& profile, const std::string& name);

}  // namespace penstock::report
