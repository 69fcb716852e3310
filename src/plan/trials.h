#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "base/long_vector.h"
#include "plan/evictions.h"
#include "plan/plan_contest.h"
#include "plan/polish.h"
#include "plan/reruns.h"

namespace penstock::plan {

/// What to compute again, at which prices the rest is swapped, and how long the step takes then.
struct Trial {
  SwapSet dropped;
  TransferPrices prices;
  /// By storage. Empty: all by the rule.
  LongVector<OnTheWay> passing = {};
  double seconds = std::numeric_limits<double>::infinity();
  LongVector<double> again_seconds = {};  ///< by storage: making it anew
  LongVector<double> lost_seconds = {};   ///< of these, for making it more than once
};

/// Plans trials in a contest, and improves them. All that it is given must outlive it.
class Trials {
 public:
  Trials(const Problem& problem, const Profile& profile, PlanContest& contest, Recomputer& recomputer)
      : problem_(problem), profile_(profile), contest_(contest), recomputer_(recomputer) {}

  /// Nothing dropped, all prices low or as start_from() said.
  Trial fresh() const;
  void start_from(TransferPrices prices) { start_ = std::move(prices); }
  /// From now on these gaps are dropped in every trial.
  void always_drop(SwapSet gaps) { always_ = std::move(gaps); }
  /// Plans the trial and fills in its time; its prices become those that follow from where that plan stalls.
  void run(Trial& trial);
  /// Runs it again and again as prices settle; leaves the best.
  void bid(Trial& trial, int rounds);
  /// Makes those of `count` changes that gain most by `gain`, many at once, fewer if that fails, as long as
  /// there are any that promise a gain and more than `reserve` plans are left.
  template <typename Gain, typename Change>
  void improve(Trial& trial, std::size_t count, int reserve, const Gain& gain, const Change& change);
  /// Holds values after all that would be made time and again because they pass.
  void hold_passing(Trial& trial, int most_plans);

  PlanContest& contest() { return contest_; }
  const Problem& problem() const { return problem_; }
  const Profile& profile() const { return profile_; }
  /// What the best trial was made of.
  std::optional<Made>& best() { return best_; }

 private:
  void count_reruns(const LongVector<Rerun>& reruns, Trial& trial) const;

  const Problem& problem_;
  const Profile& profile_;
  PlanContest& contest_;
  Recomputer& recomputer_;
  std::optional<SwapSet> always_;
  std::optional<TransferPrices> start_;
  std::optional<Made> best_;
};

template <typename Gain, typename Change>
void Trials::improve(Trial& trial, std::size_t count, int reserve, const Gain& gain, const Change& change) {
  LongVector<std::uint8_t> refused(count, 0);
  std::size_t batch = 16;
  while (!contest_.is_done() && contest_.plans_left() > reserve) {
    LongVector<std::pair<double, std::size_t>> gains;
    for (std::size_t i = 0; i < count; ++i) {
      const double gained = refused[i] != 0 ? 0 : gain(trial, i);
      if (gained > 0) gains.emplace_back(-gained, i);
    }
    if (gains.empty()) return;
    std::sort(gains.begin(), gains.end());
    Trial changed = trial;
    const std::size_t changes = std::min(batch, gains.size());
    for (std::size_t i = 0; i < changes; ++i) change(changed, gains[i].second);
    run(changed);
    if (changed.seconds < trial.seconds) {
      trial = changed;
      batch = std::min<std::size_t>(64, 2 * batch);
    } else if (changes > 1) {
      batch = changes / 2;
    } else {
      refused[gains.front().second] = 1;
      batch = 4;
    }
  }
}

}  // namespace penstock::plan
