#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lower/lower.h"
#include "plan/plan.h"
#include "run/storage_map.h"

namespace penstock::run {

/// A step and its plan.
struct PlannedStep {
  const lower::Executable* step = nullptr;
  const plan::Plan* plan = nullptr;
};

/// Where everything is in one arena.
struct PackedLayout {
  std::vector<std::int64_t> homes;                 ///< by slot: between steps; -1: a slot that never stays
  std::vector<std::vector<std::int64_t>> offsets;  ///< by step: plan::Plan::offsets
  std::int64_t arena_bytes = 0;
};

/// Places for all slots that the plans use. The plans share their boundary and run one after the other, in
/// any order and number: what stays from one to the next is at the same place in all of them. A slot that
/// comes and goes within a step may be elsewhere each time. `homes`, by slot: where those are that stay
/// where they are (others: -1).
PackedLayout pack_plans(const StorageMap& map, std::span<const PlannedStep> steps,
                        std::vector<std::int64_t> homes = {});

}  // namespace penstock::run
