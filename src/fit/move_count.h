#pragma once

#include <cstdint>

#include "fit/pool_model.h"
#include "fit/storage_map.h"
#include "memory/page_placement.h"

namespace penstock::fit {

/// What a plan moves.
struct MoveCount {
  double moves_each = 0;   ///< for each time that a storage or scratch is given memory
  double moved_share = 0;  ///< of the bytes that they are given
};

/// How often and how much memory moves in a VirtualPool when the plan is followed step after step at its
/// offsets. Counted by following it without memory.
MoveCount count_moves(const PlannedStep& planned, const StorageMap& map, const VirtualPoolRule& rule,
                      const PoolSize& size);

}  // namespace penstock::fit
