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
  count_reruns(reruns, trial);
}

void Trials::count_reruns(const LongVector<Rerun>& reruns, Trial& trial) const {
  trial.again_seconds.assign(problem_.storages.size(), 0);
  trial.lost_seconds.assign(problem_.storages.size(), 0);
  LongVector<std::uint8_t> seen(problem_.ops.size(), 0);
  for (const Rerun& rerun : reruns) {
    std::uint8_t& before = seen[static_cast<std::size_t>(rerun.op)];
    for (const Use& use : problem_.op(rerun.op).uses) {
      if (!use.writes) continue;
      const auto s = static_cast<std::size_t>(use.storage);
      trial.again_seconds[s] += profile_.seconds(rerun.op);
      if (before != 0) trial.lost_seconds[s] += profile_.seconds(rerun.op);
    }
    before = 1;
  }
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
    return of.passing[s] == OnTheWay::passes ? of.lost_seconds[s] : 0;
  };
  improve(trial, trial.passing.size(), contest_.plans_left() - most_plans, gain,
          [](Trial& changed, std::size_t s) { changed.passing[s] = OnTheWay::by_rule; });
}

}  // namespace penstock::plan
