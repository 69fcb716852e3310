#include "plan/trials.h"

#include "base/long_vector.h"
#include "plan/price_update.h"

namespace penstock::plan {
namespace {

constexpr double kFloorPrice = 0.02;

}  // namespace

Trial Trials::fresh() const {
  if (start_) return {SwapSet(problem_), *start_};
  const LongVector<double> floor(problem_.ops.size(), kFloorPrice);
  return {SwapSet(problem_), {floor, floor}};
}

void Trials::run(Trial& trial) {
  trial.seconds = std::numeric_limits<double>::infinity();
  if (always_) trial.dropped.add(*always_);
  const LongVector<Rerun> reruns =
      recomputer_.reruns(trial.dropped, trial.passing.empty() ? nullptr : &trial.passing);
  Step step(problem_, reruns, problem_.remaps);
  SwapSet swaps = choose_evictions(step, profile_, trial.prices, nullptr).swapped;
  const std::optional<Simulation> simulation = contest_.consider(step, swaps, WriteStart::at_gap);
  if (!simulation) return;
  trial.seconds = simulation->step_seconds;
  if (contest_.has_space() && (!best_ || trial.seconds < best_->seconds)) {
    best_ = Made{std::move(step), std::move(swaps), WriteStart::at_gap, trial.seconds};
  }
  update_prices(*simulation, trial.prices);
  trial.lost_seconds = lost_seconds(reruns);
}

LongVector<double> Trials::lost_seconds(const LongVector<Rerun>& reruns) const {
  LongVector<double> lost(problem_.storages.size(), 0);
  LongVector<bool> seen(problem_.ops.size(), false);
  for (const Rerun& rerun : reruns) {
    if (!seen[static_cast<std::size_t>(rerun.op)]) {
      seen[static_cast<std::size_t>(rerun.op)] = true;
      continue;
    }
    for (const Use& use : problem_.op(rerun.op).uses) {
      if (use.writes) lost[static_cast<std::size_t>(use.storage)] += profile_.seconds(rerun.op);
    }
  }
  return lost;
}

void Trials::bid(Trial& trial, int rounds) {
  Trial last = trial;
  for (int round = 0; round < rounds && !contest_.is_done(); ++round) {
    run(last);
    if (last.seconds == std::numeric_limits<double>::infinity()) return;
    if (last.seconds < trial.seconds) trial = last;
  }
}

void Trials::hold_passing(Trial& trial, int most_plans) {
  if (trial.passing.empty() || trial.lost_seconds.empty()) return;  // nothing passes, or it does not fit
  const auto gain = [&](const Trial& of, std::size_t s) {
    return of.passing[s] != 0 ? of.lost_seconds[s] : 0;
  };
  improve(trial, trial.passing.size(), contest_.plans_left() - most_plans, gain,
          [](Trial& changed, std::size_t s) { changed.passing[s] = 0; });
}

}  // namespace penstock::plan
