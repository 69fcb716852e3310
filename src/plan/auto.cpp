#include "plan/auto.h"

#include <algorithm>
#include <utility>

#include "plan/budget_error.h"
#include "plan/droppable.h"
#include "plan/policies.h"
#include "plan/race.h"
#include "plan/segment_search.h"
#include "plan/trials.h"

namespace penstock::plan {
namespace {

/// The search's work: so many ops planned in all, but no fewer plans than this. A plan takes time in
/// proportion to its ops, so the whole does as well.
constexpr int kPlannedOps = 160000;
constexpr int kFewestPlans = 24;
/// So many plans at most before what was found is polished.
constexpr int kSearchPlans = 400;

class Search {
 public:
  Search(const Problem& problem, const Profile& profile, const AutoOptions& options)
      : problem_(problem),
        profile_(profile),
        recompute_(options.recompute),
        any_(options.any),
        all_plans_(std::min(options.max_plans, std::max(kFewestPlans, kPlannedOps / (size_of(problem) + 1)))),
        contest_(problem, profile, std::min(all_plans_, kSearchPlans), options.any),
        recomputer_(problem),
        trials_(problem, profile, contest_, recomputer_) {}

  Plan search() {
    try_policy([&] { return plan_window(problem_); });
    try_policy([&] { return plan_lms(problem_); });
    try_policy([&] { return plan_superneurons(problem_); });
    try_policy([&] { return plan_pooch(problem_, profile_); });
    if (!problem_.boundary) {
      Trial trial = trials_.fresh();
      trials_.bid(trial, recompute_ ? contest_.plans_left() / 12 : contest_.plans_left());
      if (recompute_) recompute(std::move(trial));
      if (!any_ || !contest_.has_best())
        contest_.allow(std::max(0, contest_.plans_left()) +
                       std::max(all_plans_ / 8, all_plans_ - kSearchPlans));
      if (recompute_) drop_all_sets(contest_.plans_left() / 2);
      if (trials_.best() && !contest_.is_done()) polish(contest_, std::move(*trials_.best()));
    }
    if (!contest_.has_best())
      throw BudgetError("auto", std::max(smallest_bytes(problem_), problem_.budget_bytes + 1),
                        problem_.budget_bytes);
    Plan best = contest_.take_best();
    best.policy = "auto";
    return best;
  }

 private:
  static int size_of(const Problem& problem) { return static_cast<int>(problem.ops.size()); }

  template <typename Make>
  void try_policy(const Make& make) {
    if (contest_.is_done()) return;
    try {
      contest_.consider(make());
    } catch (const BudgetError&) {
      // Another policy may do with less.
    }
  }

  /// From a trial that swaps alone.
  void recompute(Trial trial) {
    droppable_ = find_droppable(problem_, profile_, recomputer_);
    Trial joint = race(trials_, droppable_, contest_.plans_left() * 2 / 5);
    trials_.hold_passing(joint, contest_.plans_left() / 4);
    trial.passing = joint.passing;
    SegmentSearch segments(trials_, droppable_);
    Trial segmented = segments.drop_between_checkpoints(trial, contest_.plans_left() / 2);
    trials_.hold_passing(segmented, contest_.plans_left() / 4);
    segments.climb(joint.seconds < segmented.seconds ? joint : segmented);
  }

  /// Every set of values to be made anew, where there are few: by the bits of a number.
  void drop_all_sets(int most_plans) {
    if (droppable_.size() > 12 || most_plans < 1 << droppable_.size()) return;
    for (std::uint32_t bits = 0; bits < 1U << droppable_.size() && !contest_.is_done(); ++bits) {
      Trial trial = trials_.fresh();
      double rerun_seconds = 0;
      for (std::size_t i = 0; i < droppable_.size(); ++i) {
        if ((bits >> i & 1U) == 0) continue;
        trial.dropped.set(droppable_[i].storage, droppable_[i].access, 1);
        rerun_seconds += droppable_[i].least_seconds;
      }
      if (contest_.compute_seconds() + rerun_seconds < contest_.best_seconds()) trials_.run(trial);
    }
  }

  const Problem& problem_;
  const Profile& profile_;
  bool recompute_, any_;
  int all_plans_;
  PlanContest contest_;
  Recomputer recomputer_;
  Trials trials_;
  std::vector<Droppable> droppable_;
};

}  // namespace

Plan plan_auto(const Problem& problem, const Profile& profile, const AutoOptions& options) {
  if (keep_bytes(problem) <= problem.budget_bytes) {
    Plan plan = plan_keep(problem);
    plan.policy = "auto";
    return plan;
  }
  const std::int64_t needed_bytes = smallest_bytes(problem);
  if (needed_bytes > problem.budget_bytes && !options.below_smallest) {
    throw BudgetError("auto", needed_bytes, problem.budget_bytes);
  }
  return Search(problem, profile, options).search();
}

}  // namespace penstock::plan
