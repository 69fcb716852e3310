#pragma once

#include "base/long_vector.h"
#include "plan/profile.h"
#include "plan/swap_set.h"

namespace penstock::plan {

/// What a second of transfer costs, in seconds of the step: little where the tier has nothing else to do, one
/// where compute waits for it. By op of the graph: `write` of what is written out after it, `read` of what is
/// read in for it.
struct TransferPrices {
  LongVector<double> write, read;
};

struct Evictions {
  SwapSet swapped;
  SwapSet dropped;  ///< to be computed again
};

/// Chooses gaps until what is left in memory fits the budget: from the first op on, wherever memory exceeds
/// the budget, the gaps that free most for longest at the least price; then takes back those that turned out
/// needless. Leaves a set that exceeds the budget only where there is no other. `recompute_seconds`: what
/// making each gap's value anew costs, infinite where it cannot be; null: nothing is dropped.
Evictions choose_evictions(const Step& step, const Profile& profile, const TransferPrices& prices,
                           const GapMap<double>* recompute_seconds);

}  // namespace penstock::plan
