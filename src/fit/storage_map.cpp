#include "fit/storage_map.h"

#include <algorithm>

#include "base/long_vector.h"
#include "tier/tier.h"

namespace penstock::fit {

StorageMap map_slots(std::span<const lower::Executable* const> steps) {
  StorageMap map;
  for (const lower::Executable* step : steps) map.storages = std::max(map.storages, step->graph.storages);
  map.slot_bytes.resize(static_cast<std::size_t>(map.storages));
  map.extent.assign(static_cast<std::size_t>(map.storages), -1);
  for (const lower::Executable* step : steps) {
    for (const ir::Tensor& tensor : step->graph.tensors) {
      std::int64_t& bytes = map.slot_bytes[static_cast<std::size_t>(tensor.storage)];
      bytes = std::max(bytes, tensor.size_bytes());
    }
    for (const std::int64_t bytes : step->scratch_bytes) {
      if (bytes > 0) map.scratch_slot.try_emplace(bytes, -1);
    }
    for (const auto& variants : step->variant_scratch_bytes) {
      for (const std::int64_t bytes : variants) {
        if (bytes > 0) map.scratch_slot.try_emplace(bytes, -1);
      }
    }
  }
  for (auto& [bytes, slot] : map.scratch_slot) {
    slot = static_cast<int>(map.slot_bytes.size());
    map.slot_bytes.push_back(bytes);
  }
  return map;
}

namespace {

static_assert(plan::kTierGrain == kTierAlignment);

/// An extent for each storage that `swapped` says, and for no other; none has a place yet.
void give_extents(StorageMap& map, const LongVector<bool>& swapped) {
  map.extent_bytes.clear();
  for (std::size_t s = 0; s < swapped.size(); ++s) {
    map.extent[s] = swapped[s] ? static_cast<int>(map.extent_bytes.size()) : -1;
    if (swapped[s]) map.extent_bytes.push_back(map.slot_bytes[s]);
  }
  map.extent_offset.assign(map.extent_bytes.size(), -1);
}

}  // namespace

void map_extents(StorageMap& map, std::span<const plan::Plan* const> plans) {
  LongVector<bool> swapped(map.extent.size(), false);
  const LongVector<std::int64_t>* places = nullptr;
  for (const plan::Plan* plan : plans) {
    for (const plan::Instruction& in : plan->instructions) {
      if (in.action == plan::Action::swap_in || in.action == plan::Action::swap_out) {
        swapped[static_cast<std::size_t>(in.id)] = true;
      }
    }
    for (const plan::Standing& place : plan->boundary) {
      if (place.on_tier) swapped[static_cast<std::size_t>(place.storage)] = true;
    }
    if (places == nullptr && !plan->places.empty()) places = &plan->places;
  }
  give_extents(map, swapped);
  map.tier_bytes = 0;
  for (std::size_t s = 0; s < swapped.size(); ++s) {
    if (!swapped[s]) continue;
    const std::int64_t offset = places != nullptr ? (*places)[s] : map.tier_bytes;
    map.extent_offset[static_cast<std::size_t>(map.extent[s])] = offset;
    map.tier_bytes = std::max(map.tier_bytes, offset + plan::place_bytes(map.slot_bytes[s]));
  }
}

void add_extents(StorageMap& map, const StorageMap& other) {
  LongVector<bool> swapped(map.extent.size());
  LongVector<std::int64_t> places(map.extent.size(), -1);
  for (std::size_t s = 0; s < swapped.size(); ++s) {
    swapped[s] = map.extent[s] >= 0 || other.extent[s] >= 0;
    places[s] = map.place(s);
  }
  give_extents(map, swapped);
  move_extents(map, places);
  map.tier_bytes = std::max(map.tier_bytes, other.tier_bytes);
}

void move_extents(StorageMap& map, std::span<const std::int64_t> places) {
  for (std::size_t s = 0; s < places.size(); ++s) {
    if (map.extent[s] >= 0) map.extent_offset[static_cast<std::size_t>(map.extent[s])] = places[s];
  }
}

}  // namespace penstock::fit
