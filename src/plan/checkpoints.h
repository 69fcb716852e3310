#pragma once

#include <cstdint>
#include <vector>

#include "plan/problem.h"
#include "plan/profile.h"
#include "plan/swap_set.h"

namespace penstock::plan {

/// Gaps whose values are not to be computed again, so that what is computed again in between has something
/// near to start from: cuts the forward half into `segments` parts of about equal time, each cut where least
/// passes over it, and marks all values that do, from their last use in forward on. 0: no cuts.
SwapSet checkpoint_gaps(const Problem& problem, const Profile& profile, int segments);

}  // namespace penstock::plan
