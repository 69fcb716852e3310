#pragma once

#include "plan/evictions.h"
#include "plan/simulator.h"

namespace penstock::plan {

/// Raises the prices of transfers that compute waited for in a simulated step (with its timeline), and of
/// those that kept them waiting: all of the lane's busy period before. Lowers the others. Returns the seconds
/// that compute waited.
double update_prices(const Simulation& simulation, TransferPrices& prices);

}  // namespace penstock::plan
