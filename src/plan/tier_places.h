#pragma once

#include <cstdint>
#include <span>

#include "base/long_vector.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace penstock::plan {

/// A time during which a storage needs its place on the tier: from the swap_out that begins to write a value
/// until that is complete and, where it is read, until the last read of it is. Instructions `first` to
/// `last`, both included.
struct TierStay {
  ir::StorageId storage = ir::kNone;
  std::int64_t first = 0, last = 0;
};

/// All stays of a plan, by storage. State that is ever on the tier needs its place all the time: who moves it
/// between steps, and other plans, know it there.
LongVector<TierStay> tier_stays(const Problem& problem, const Plan& plan);

/// The most that these storages have on the tier at a time: no places take less.
std::int64_t tier_peak_bytes(const Problem& problem, std::span<const TierStay> stays);

/// A plan and what it solves.
struct SolvedProblem {
  const Problem* problem = nullptr;
  const Plan* plan = nullptr;
};

struct TierPlaces {
  LongVector<std::int64_t> offsets;  ///< by storage; -1: never there
  std::int64_t bytes = 0;            ///< of the whole tier
};

/// One place for each storage that the plans ever have on the tier, such that no two that need theirs at the
/// same time overlap. The plans run one after the other, in any order and number. `fixed`, by storage: state
/// that has a place already and keeps it (others: -1).
TierPlaces place_on_tier(std::span<const SolvedProblem> plans, std::span<const std::int64_t> fixed = {});

}  // namespace penstock::plan
