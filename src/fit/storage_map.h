#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "base/long_vector.h"
#include "lower/lower.h"
#include "plan/plan.h"
#include "tier/extents.h"

namespace penstock::fit {

/// Which slot of the pool and which extent of the tier belong to each storage of one or more graphs that
/// share a numbering of storages (lower::share_state). Plain data, made in two steps: slots before planning,
/// extents after.
struct StorageMap {
  int storages = 0;  ///< storage s has slot s
  LongVector<std::int64_t>
      slot_bytes;  ///< of the pool's slots: storages, then one slot for each scratch size
  std::map<std::int64_t, int> scratch_slot;  ///< by scratch bytes; none for 0
  LongVector<int> extent;                    ///< by storage; -1: never on the tier
  LongVector<std::int64_t> extent_bytes;     ///< by extent
  LongVector<std::int64_t> extent_offset;    ///< by extent: where it lies on the tier; -1: nowhere for now
  std::int64_t tier_bytes = 0;               ///< how large the tier is

  /// What make_tier() takes.
  TierExtents extents() const { return {extent_bytes, extent_offset, tier_bytes}; }
  /// Where the storage lies on the tier; -1: nowhere.
  std::int64_t place(std::size_t storage) const {
    return extent[storage] < 0 ? -1 : extent_offset[static_cast<std::size_t>(extent[storage])];
  }
  std::span<const std::int64_t> storage_bytes() const {
    return {slot_bytes.data(), static_cast<std::size_t>(storages)};
  }
};

StorageMap map_slots(std::span<const lower::Executable* const> steps);

/// Gives an extent to each storage that one of the plans moves to or from the tier, at the place that the
/// plans say; all of them must say the same. Where they say none, each has a place of its own.
void map_extents(StorageMap& map, std::span<const plan::Plan* const> plans);
/// Gives those an extent too that another map has one for, without a place; and the tier that one's size, if
/// it is larger.
void add_extents(StorageMap& map, const StorageMap& other);
/// The extents lie at these places from now on, by storage.
void move_extents(StorageMap& map, std::span<const std::int64_t> places);

}  // namespace penstock::fit
