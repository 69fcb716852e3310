#pragma once

#include <span>
#include <string>
#include <vector>

#include "fit/pool_model.h"
#include "fit/storage_map.h"

namespace penstock::fit {

/// Proves that plans which say where everything goes keep what is in memory at the same time apart, within
/// `pool_bytes`, step after step and from any of the steps to any other; or says what is wrong. Shares no
/// code with packing. Empty: nothing is wrong.
std::string check_offsets(const StorageMap& map, std::span<const PlannedStep> steps, std::int64_t pool_bytes);

}  // namespace penstock::fit
