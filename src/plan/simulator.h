#pragma once

#include <cstdint>

#include "base/long_vector.h"
#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/profile.h"

namespace penstock::plan {

/// Something that took time. Seconds since the step's beginning; a transfer that was under way then begins
/// below 0.
struct TimelineEvent {
  Action action =
      Action::run;  ///< run: compute lane; swap_in, swap_out: tier lanes; wait: compute stands still
  std::int32_t id = ir::kNone;  ///< op or storage
  bool repeated = false;        ///< of run: the op ran before in this step
  double start_seconds = 0;
  double end_seconds = 0;
};

struct MemoryPoint {
  double seconds = 0;
  std::int64_t bytes = 0;  ///< from then on, scratch included
};

/// One step in steady state.
struct Simulation {
  double step_seconds = 0;
  double compute_seconds = 0;    ///< repetitions included
  double recompute_seconds = 0;  ///< of these, repetitions
  double host_seconds = 0;       ///< compute stands still while memory is mapped and transfers are started
  double slowed_seconds = 0;     ///< compute is slower beside transfers
  double stall_seconds = 0;      ///< waiting for the tier: step - compute - host - slowed
  double read_seconds = 0;       ///< the tier's lanes are busy
  double write_seconds = 0;
  double link_seconds = 0;        ///< the link between ranks is busy
  double link_stall_seconds = 0;  ///< of stall_seconds, waiting for it
  std::int64_t peak_bytes = 0;
  LongVector<TimelineEvent> timeline;  ///< where asked for; transfers that were waited for in this step
  LongVector<TimelineEvent> link;      ///< where asked for: exchanges, by the op that starts them
  LongVector<MemoryPoint> memory;      ///< where asked for
};

/// Follows the plan's instructions over simulated time, a few steps in a row, and measures the last. The plan
/// must be one that the checker accepts. Linear in the plan's length.
Simulation simulate(const Problem& problem, const Plan& plan, const Profile& profile,
                    bool with_timeline = false);

}  // namespace penstock::plan
