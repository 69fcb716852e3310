#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.h"

namespace penstock::run {

/// What one step took.
struct StepStats {
  double step_seconds = 0;
  double compute_seconds = 0;    ///< in kernels, repetitions included
  double recompute_seconds = 0;  ///< of these, in repetitions
  double stall_seconds = 0;      ///< waiting for the tier
  double network_seconds = 0;    ///< in ops that wait for other ranks
  double settle_seconds = 0;     ///< before the step: moving state to where the plan wants it
  std::int64_t swapped_out_bytes = 0;
  std::int64_t swapped_in_bytes = 0;
  std::int64_t peak_pool_bytes = 0;  ///< most bytes mapped in the pool during this step
};

/// One instruction that took time, in seconds since the trace's first step began.
struct TraceEvent {
  plan::Action action = plan::Action::run;
  std::int32_t id = ir::kNone;  ///< op or storage
  bool repeated = false;        ///< an op that ran before in this step
  double start_seconds = 0;
  double end_seconds = 0;
};

/// The events of one or more steps in the order in which they were found to be over. For swap_out and
/// swap_in: from the request until it was found complete, by waiting for it or (`looks_at_transfers`) after
/// an op, which costs a look at all that are under way after every op.
struct Trace {
  std::vector<TraceEvent> events;
  double origin_seconds = -1;  ///< of the clock; set by the first step
  bool looks_at_transfers = false;
};

}  // namespace penstock::run
