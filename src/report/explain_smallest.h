#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/problem.h"

namespace penstock::report {

/// What the smallest budget of a step is made of, a line each: what the process takes `beside` its tensors by
/// tag, the op that needs most at once, and the tensors that it needs.
std::vector<std::string> explain_smallest(const plan::Problem& problem, std::int64_t smallest_bytes,
                                          const std::map<std::string, std::int64_t>& beside);

}  // namespace penstock::report
