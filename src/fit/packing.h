#pragma once

#include <cstdint>
#include <span>

#include "base/long_vector.h"
#include "fit/pool_model.h"
#include "fit/storage_map.h"
#include "memory/page_placement.h"

namespace penstock::fit {

/// Offsets for all slots that the plans use. The plans share their boundary and run one after the other, in
/// any order and number: what stays from one to the next is at the same offset in all of them. A slot that
/// comes and goes within a step may be elsewhere each time. `fixed`, by slot: the offsets of those that must
/// stay where they are; others, and all where it is empty: kAnywhere. `paged`: how a virtual pool rounds,
/// where offsets of all but small slots are addresses; null: all slots lie in one arena.
Layout pack_plans(const StorageMap& map, std::span<const PlannedStep> steps,
                  const LongVector<std::int64_t>& fixed, const VirtualPoolRule* paged);

}  // namespace penstock::fit
