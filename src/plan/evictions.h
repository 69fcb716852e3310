#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/profile.h"
#include "plan/swap_set.h"

namespace penstock::plan {

/// How to judge what to swap.
struct EvictionOptions {
  double distance_power = 1;  ///< how much a late next use counts against the bytes to be moved
  double settle_factor = 1;   ///< a gap is of use only where it is longer than this times its transfers
};

/// Chooses gaps to be spent on the tier until what is left fits the budget: from the first op on, wherever
/// memory exceeds the budget, the gaps that free most for longest for the least transfers; then takes back
/// those that turned out needless. Gaps that are forbidden
/// (`pinned`) are not chosen. Leaves a set that exceeds the budget where there is no other.
SwapSet choose_evictions(const Problem& problem, const Profile& profile, const EvictionOptions& options,
                         const SwapSet* pinned = nullptr);

}  // namespace penstock::plan
