#pragma once

#include <cstdint>

#include "base/long_vector.h"
#include "penstock/step_stats.h"
#include "plan/plan.h"

namespace penstock::run {

/// One instruction that took time, in seconds since the trace's first step began.
struct TraceEvent {
  plan::Action action = plan::Action::run;
  std::int32_t id = ir::kNone;  ///< op or storage
  bool repeated = false;        ///< an op that ran before in this step
  double start_seconds = 0;
  double end_seconds = 0;
};

/// One run of an op, where no more than its time is asked for: a step may have hundreds of thousands.
struct OpTime {
  std::int32_t op : 31 = ir::kNone;
  bool repeated : 1 = false;
  float seconds = 0;
};
static_assert(sizeof(OpTime) == 8);

/// The events of one or more steps in the order in which they were found to be over. For swap_out and
/// swap_in: from the request until it was found complete, by waiting for it or (`looks_at_transfers`) after
/// an op, which costs a look at all that are under way after every op.
struct Trace {
  LongVector<TraceEvent> events;
  LongVector<OpTime> op_times;  ///< in their place, where `only_ops`
  double origin_seconds = -1;   ///< of the clock; set by the first step
  bool looks_at_transfers = false;
  bool only_ops = false;
};

}  // namespace penstock::run
