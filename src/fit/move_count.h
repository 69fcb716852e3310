#pragma once

#include <cstdint>

#include "fit/pool_model.h"
#include "fit/storage_map.h"
#include "memory/page_placement.h"

namespace penstock::fit {

/// How often memory moves in a VirtualPool for each time that a storage or scratch is given some, when the
/// plan is followed step after step at its offsets. Counted by following it without memory.
double moves_each(const PlannedStep& planned, const StorageMap& map, const VirtualPoolRule& rule,
                  const PoolSize& size);

}  // namespace penstock::fit
