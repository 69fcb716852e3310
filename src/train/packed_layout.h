#pragma once

#include <span>

#include "lower/lower.h"
#include "memory/pack.h"
#include "plan/plan.h"
#include "run/storage_map.h"

namespace penstock::training {

/// A step and its plan.
struct PlannedStep {
  const lower::Executable* step = nullptr;
  const plan::Plan* plan = nullptr;
};

/// Offsets in one arena for all slots that the plans use. The plans share their boundary and run one after
/// the other, in any order and number.
Packing pack_plans(const run::StorageMap& map, std::span<const PlannedStep> steps);

}  // namespace penstock::training
