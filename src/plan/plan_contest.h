#pragma once

#include <optional>

#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/profile.h"
#include "plan/simulator.h"
#include "plan/timed_walk.h"

namespace penstock::plan {

/// Simulates plans, counts them, and keeps the one with the shortest step, which is checked. Problem and
/// profile must outlive it.
class PlanContest {
 public:
  /// `any`: it is over with the first plan.
  PlanContest(const Problem& problem, const Profile& profile, int plans, bool any = false);

  /// Within a thousandth of compute alone, which no plan beats; or enough plans were tried.
  bool is_done() const {
    return plans_left_ <= 0 || (best_ && (any_ || best_seconds_ <= 1.001 * compute_seconds_));
  }
  int plans_left() const { return plans_left_; }
  void allow(int plans) { plans_left_ = plans; }
  double compute_seconds() const { return compute_seconds_; }
  double best_seconds() const { return best_seconds_; }
  bool has_best() const { return best_.has_value(); }
  Plan take_best() { return std::move(*best_); }

  /// What the places on the tier take of the last plan that was considered, where that is limited.
  std::int64_t tier_bytes() const { return tier_bytes_; }

  /// Whether plans that take more of the tier than there is are simulated as well; they are not taken.
  void look_beyond_space(bool look) { beyond_space_ = look; }
  /// Of these the one with the shortest step, since the last call; none: there were none.
  std::optional<Plan> take_best_beyond();
  /// Whether the last plan that was considered has enough space.
  bool has_space() const { return tier_bytes_ <= problem_.tier_bytes; }

  /// The simulation has a timeline. Nothing if the plan takes more of the tier than the problem has.
  std::optional<Simulation> consider(Plan plan);
  /// Plans a swap set of a step of the problem; nothing if it does not fit.
  std::optional<Simulation> consider(const Step& step, const SwapSet& swaps, WriteStart write_start);

 private:
  const Problem& problem_;
  const Profile& profile_;
  int plans_left_;
  double compute_seconds_ = 0;
  bool any_;
  std::int64_t tier_bytes_ = 0;
  std::optional<Plan> best_;
  double best_seconds_;
  bool beyond_space_ = false;
  std::optional<Plan> best_beyond_;
  double best_beyond_seconds_;
};

}  // namespace penstock::plan
