#pragma once

#include <span>
#include <string>
#include <vector>

#include "fit/pool_model.h"
#include "fit/storage_map.h"

namespace penstock::fit {

/// Proves that plans which say where everything goes keep what is in memory at the same time apart, within
/// a pool of that size, step after step and from any of the steps to any other; or says what is wrong. Shares
/// no code with packing. `grain_bytes`: the unit of memory that moves; slots of more than a quarter of it are
/// at addresses, in whole units, and together never more than there is of that memory. 0: none moves. Empty:
/// nothing is wrong.
std::string check_offsets(const StorageMap& map, std::span<const PlannedStep> steps, const PoolSize& size,
                          std::int64_t grain_bytes);

}  // namespace penstock::fit
