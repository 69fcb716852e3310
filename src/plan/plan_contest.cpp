#include "plan/plan_contest.h"

#include <limits>
#include <utility>

#include "base/error.h"
#include "plan/checker.h"
#include "plan/tier_places.h"

namespace penstock::plan {

PlanContest::PlanContest(const Problem& problem, const Profile& profile, int plans, bool any)
    : problem_(problem),
      profile_(profile),
      plans_left_(plans),
      any_(any),
      best_seconds_(std::numeric_limits<double>::infinity()),
      best_beyond_seconds_(best_seconds_) {
  for (std::size_t op = 0; op < profile.op_seconds.size(); ++op)
    compute_seconds_ += profile.op_seconds.at(op, 0);
}

std::optional<Plan> PlanContest::take_best_beyond() {
  best_beyond_seconds_ = std::numeric_limits<double>::infinity();
  return std::exchange(best_beyond_, std::nullopt);
}

std::optional<Simulation> PlanContest::consider(Plan plan) {
  --plans_left_;
  if (problem_.tier_bytes != kNoLimit) {
    const SolvedProblem solved{&problem_, &plan};
    TierPlaces places = place_on_tier({&solved, 1});
    tier_bytes_ = places.bytes;
    if (!has_space() && !beyond_space_) return std::nullopt;
    plan.places = std::move(places.offsets);
  }
  Simulation simulation = simulate(problem_, plan, profile_, true);
  if (!has_space()) {
    if (simulation.step_seconds < best_beyond_seconds_) {
      best_beyond_seconds_ = simulation.step_seconds;
      best_beyond_ = std::move(plan);
    }
    return simulation;
  }
  if (best_ && simulation.step_seconds >= best_seconds_) return simulation;
  const CheckResult result = check(problem_, plan);
  require(result.ok, result.message.c_str());
  plan.summary = result.summary;
  best_seconds_ = simulation.step_seconds;
  best_ = std::move(plan);
  return simulation;
}

std::optional<Simulation> PlanContest::consider(const Step& step, const SwapSet& swaps,
                                                WriteStart write_start) {
  tier_bytes_ = 0;
  TimedWalk open(step, profile_, swaps, {}, write_start);
  if (open.walk()) {
    TimedWalk closed(step, profile_, swaps, open.end(), write_start);
    if (closed.walk()) return consider(closed.finish("auto"));
  }
  --plans_left_;
  return std::nullopt;
}

}  // namespace penstock::plan
