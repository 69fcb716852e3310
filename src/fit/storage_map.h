#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "lower/lower.h"
#include "plan/plan.h"

namespace penstock::fit {

/// Which slot of the pool and which extent of the tier belong to each storage of one or more graphs that
/// share a numbering of storages (lower::share_state). Plain data, made in two steps: slots before planning,
/// extents after.
struct StorageMap {
  int storages = 0;  ///< storage s has slot s
  std::vector<std::int64_t>
      slot_bytes;  ///< of the pool's slots: storages, then one slot for each scratch size
  std::map<std::int64_t, int> scratch_slot;  ///< by scratch bytes; none for 0
  std::vector<int> extent;                   ///< by storage; -1: never on the tier
  std::vector<std::int64_t> extent_bytes;    ///< what make_tier() takes

  /// All that the tier has to hold.
  std::int64_t tier_bytes() const;
  std::span<const std::int64_t> storage_bytes() const {
    return {slot_bytes.data(), static_cast<std::size_t>(storages)};
  }
};

StorageMap map_slots(std::span<const lower::Executable* const> steps);

/// Gives an extent to each storage that one of the plans moves to or from the tier.
void map_extents(StorageMap& map, std::span<const plan::Plan* const> plans);
/// Gives an extent to each storage that `swapped` says, by storage, and to no other.
void give_extents(StorageMap& map, const std::vector<bool>& swapped);

}  // namespace penstock::fit
