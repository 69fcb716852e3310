#include "plan/plan_contest.h"

#include <limits>
#include <utility>

#include "base/error.h"
#include "plan/checker.h"

namespace penstock::plan {

PlanContest::PlanContest(const Problem& problem, const Profile& profile, int plans)
    : problem_(problem),
      profile_(profile),
      plans_left_(plans),
      best_seconds_(std::numeric_limits<double>::infinity()) {
  for (const auto& seconds : profile.op_seconds) compute_seconds_ += seconds[0];
}

Simulation PlanContest::consider(Plan plan) {
  const CheckResult result = check(problem_, plan);
  require(result.ok, result.message.c_str());
  plan.summary = result.summary;
  --plans_left_;
  Simulation simulation = simulate(problem_, plan, profile_, true);
  if (!best_ || simulation.step_seconds < best_seconds_) {
    best_seconds_ = simulation.step_seconds;
    best_ = std::move(plan);
  }
  return simulation;
}

std::optional<Simulation> PlanContest::consider(const Problem& longer, const SwapSet& swaps,
                                                WriteStart write_start) {
  TimedWalk open(longer, profile_, swaps, {}, write_start);
  if (open.walk()) {
    TimedWalk closed(longer, profile_, swaps, open.end(), write_start);
    if (closed.walk()) return consider(closed.finish("auto"));
  }
  --plans_left_;
  return std::nullopt;
}

}  // namespace penstock::plan
