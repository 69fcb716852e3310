#pragma once

#include <cstdint>

namespace penstock {

/// What one step took, or would take.
struct StepStats {
  double step_seconds = 0;
  double compute_seconds = 0;    ///< in kernels, repetitions included
  double recompute_seconds = 0;  ///< of these, in repetitions
  double stall_seconds = 0;      ///< waiting for the tier
  double exchange_seconds = 0;   ///< in ops that wait for other ranks
  double settle_seconds = 0;     ///< before the step: moving state to where the plan wants it
  std::int64_t swapped_out_bytes = 0;
  std::int64_t swapped_in_bytes = 0;
  std::int64_t peak_pool_bytes = 0;  ///< most bytes in use in the pool during this step
};

}  // namespace penstock
