#pragma once

#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/profile.h"

namespace penstock::plan {

/// SuperNeurons' rule for workspaces, on a finished plan: each op takes the fastest of its variants whose
/// scratch fits into what is free when it runs. An op that runs several times takes one variant for all of
/// them, so that it makes the same values again. The plan is to be proved anew: its peak may be higher, up to
/// the budget.
void pick_variants(const Problem& problem, const Profile& profile, Plan& plan);

}  // namespace penstock::plan
