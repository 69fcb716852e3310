#pragma once

#include <cstdint>

#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/profile.h"
#include "plan/simulator.h"

namespace penstock::plan {

/// How long a search goes on.
enum class Effort : std::uint8_t {
  any,      ///< until there is a plan
  usual,    ///< as long as is hardly noticed
  thorough  ///< some thirty times as long
};

struct AutoOptions {
  bool recompute = true;
  /// How many plans are made and simulated at most. On large steps fewer are, so that the time of the search
  /// grows about linearly with the ops; it asks no clock, so the same problem always has the same plan.
  int max_plans = 3000;
  /// Searches even where no plan without recomputation exists, which takes a while where none with it does
  /// either.
  bool below_smallest = false;
  Effort effort = Effort::usual;
  /// A plan that swaps what it can, from which the search begins. Where the problem limits the tier's space
  /// it takes more than that, and must be given.
  const Plan* swapping = nullptr;
};

/// Minimises the simulated step time over what to keep, swap, compute again, and when. Starts from the plans
/// of all other policies, so it is never worse than they are in simulation.
Plan plan_auto(const Problem& problem, const Profile& profile, const AutoOptions& options = {});

}  // namespace penstock::plan
