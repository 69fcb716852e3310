#include "plan/auto.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/long_vector.h"
#include "plan/budget_error.h"
#include "plan/droppable.h"
#include "plan/family_search.h"
#include "plan/policies.h"
#include "plan/price_update.h"
#include "plan/race.h"
#include "plan/segment_search.h"
#include "plan/tier_drops.h"
#include "plan/trials.h"

namespace penstock::plan {
namespace {

/// The search's work: so many ops planned in all, but no fewer plans than this. A plan takes time in
/// proportion to its ops, so the whole does as well.
constexpr int kPlannedOps = 160000, kPlannedThoroughly = 640000;
constexpr int kFewestPlans = 24;
/// The same for changing families in a thorough search.
constexpr int kPlannedInFamilies = 4800000;
/// A step that takes so many times as long as its ops is searched from a second start.
constexpr double kLosesMuch = 1.1;
/// So many plans at most before what was found is polished.
constexpr int kSearchPlans = 400;
/// Where the tier's space is limited: how often more or less is dropped until that suffices, which share of
/// it is as good as all, and how far one that failed is kept away from.
constexpr int kTierRounds = 8;
/// So many plans at least that may take more of it, and so many that change single gaps in a long step.
constexpr int kFewestBeyond = 6, kPolishPlans = 2;
/// After so many updates by one plan's stalls, a second of transfer is worth about one where it stalls.
constexpr int kPriceRounds = 4;
constexpr double kNearlyAll = 0.97, kLess = 0.02;
/// Over more ops than these, other policies' plans are not tried where the tier's space is limited.
constexpr int kLongSearch = 10000;

class Search {
 public:
  Search(const Problem& problem, const Profile& profile, const AutoOptions& options)
      : problem_(problem),
        profile_(profile),
        recompute_(options.recompute),
        any_(options.effort == Effort::any),
        thorough_(options.effort == Effort::thorough),
        all_plans_(plans_for(options.effort == Effort::thorough ? kPlannedThoroughly : kPlannedOps, problem,
                             options)),
        family_plans_(plans_for(kPlannedInFamilies, problem, options)),
        swapping_(options.swapping),
        contest_(problem, profile, std::min(all_plans_, kSearchPlans), any_),
        recomputer_(problem,
                    options.swapping != nullptr ? Recomputer::kHoldLittle : Recomputer::kHoldFraction),
        trials_(problem, profile, contest_, recomputer_) {}

  Plan search() {
    if (problem_.tier_bytes == kNoLimit || size_of(problem_) <= kLongSearch) {
      try_policy([&] { return plan_window(problem_); });
      try_policy([&] { return plan_lms(problem_); });
      try_policy([&] { return plan_superneurons(problem_); });
      try_policy([&] { return plan_pooch(problem_, profile_); });
    }
    if (!problem_.boundary) {
      if (swapping_ != nullptr) {
        look_at_swapping();
        keep_within_tier();
        if (size_of(problem_) > kLongSearch) return search_on_within_tier();
      }
      Trial trial = trials_.fresh();
      trials_.bid(trial, recompute_ ? contest_.plans_left() / 12 : contest_.plans_left());
      if (recompute_) recompute(std::move(trial));
      if (!any_ || !contest_.has_best())
        contest_.allow(std::max(0, contest_.plans_left()) +
                       std::max(all_plans_ / 8, all_plans_ - kSearchPlans));
      if (recompute_) drop_all_sets(contest_.plans_left() / 2);
      if (trials_.best() && !contest_.is_done()) polish(contest_, std::move(*trials_.best()));
    }
    return best_or_refuse();
  }

 private:
  Plan best_or_refuse() {
    if (!contest_.has_best())
      throw BudgetError("auto", std::max(smallest_bytes(problem_), problem_.budget_bytes + 1),
                        problem_.budget_bytes);
    Plan best = contest_.take_best();
    best.policy = "auto";
    return best;
  }

  /// The rest of a long search: again, from the prices that were found. Where only a plan's existence is
  /// asked for, there is nothing more to do.
  Plan search_on_within_tier() {
    while (!any_ && contest_.has_best() && !contest_.is_done() && contest_.plans_left() > kFewestBeyond)
      keep_within_tier();
    contest_.allow(kPolishPlans);
    if (trials_.best() && !contest_.is_done()) polish(contest_, std::move(*trials_.best()));
    return best_or_refuse();
  }

  static int plans_for(int planned_ops, const Problem& problem, const AutoOptions& options) {
    return std::min(options.max_plans, std::max(kFewestPlans, planned_ops / (size_of(problem) + 1)));
  }
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

  /// What the step would do if the tier had space enough, with prices by which transfers and computing again
  /// were weighed; the plan is the contest's best beyond the space, or its best.
  Trial search_beyond_space() {
    trials_.always_drop(SwapSet(problem_));
    if (any_) return trials_.fresh();
    contest_.look_beyond_space(true);
    Trial trial = race(trials_, droppable_, std::max(kFewestBeyond, contest_.plans_left() / 4));
    contest_.look_beyond_space(false);
    return trial;
  }

  /// All that can be computed again, and prices where the plan that swaps whatever it can has to wait.
  void look_at_swapping() {
    droppable_ = find_droppable(problem_, profile_, recomputer_, DropGaps::all);
    TransferPrices prices = trials_.fresh().prices;
    const Simulation swapped = simulate(problem_, *swapping_, profile_, true);
    for (int round = 0; round < kPriceRounds; ++round) update_prices(swapped, prices);
    trials_.start_from(std::move(prices));
  }

  /// Finds what must be dropped in all trials, so that the rest has enough space on the tier: what is better
  /// computed again even where there is space, and as much besides as lacks.
  void keep_within_tier() {
    const Trial beyond = search_beyond_space();
    sort_by_cost(droppable_, beyond.prices);
    trials_.start_from(beyond.prices);
    const std::optional<Plan> plan = contest_.take_best_beyond();
    if (contest_.has_best() && beyond.seconds <= contest_.best_seconds()) return;  // It has space enough.
    const TierDrops drops(problem_, plan ? *plan : *swapping_, droppable_, recomputer_);
    const auto all = static_cast<double>(problem_.tier_bytes);
    std::optional<SwapSet> enough;
    double space = all, too_much = std::numeric_limits<double>::infinity();
    for (int round = 0; round < kTierRounds && !contest_.is_done(); ++round) {
      SwapSet gaps = drops.within(static_cast<std::int64_t>(space));
      gaps.add(beyond.dropped);
      trials_.always_drop(gaps);
      Trial trial = beyond;
      trials_.run(trial);
      const auto taken = static_cast<double>(contest_.tier_bytes());
      if (trial.seconds < std::numeric_limits<double>::infinity()) {
        enough = std::move(gaps);
        if (taken > kNearlyAll * all || space >= static_cast<double>(drops.peak_bytes())) break;
        space = std::min(space + all - taken, (space + too_much) / 2);
      } else {
        if (taken <= all) break;  // It is memory that lacks.
        too_much = std::min(too_much, space);
        space -= taken - all + kLess * all;
        if (space <= 0) break;
      }
    }
    if (enough) trials_.always_drop(std::move(*enough));
  }

  /// From a trial that swaps alone.
  void recompute(Trial trial) {
    if (droppable_.empty())
      droppable_ = find_droppable(problem_, profile_, recomputer_,
                                  swapping_ != nullptr ? DropGaps::all : DropGaps::between_phases);
    Trial joint = race(trials_, droppable_, contest_.plans_left() * 2 / 5);
    trials_.hold_passing(joint, contest_.plans_left() / 4);
    trial.passing = joint.passing;
    SegmentSearch segments(trials_, droppable_);
    Trial segmented = segments.drop_between_checkpoints(trial, contest_.plans_left() / 2);
    trials_.hold_passing(segmented, contest_.plans_left() / 4);
    Trial best = segments.climb(joint.seconds < segmented.seconds ? joint : segmented);
    if (!thorough_ || best.again_seconds.empty()) return;  // it does not fit
    contest_.allow(family_plans_);
    FamilySearch families(trials_, droppable_);
    families.search(best);
    // Another start may end elsewhere.
    if (contest_.best_seconds() > kLosesMuch * contest_.compute_seconds()) families.search(joint);
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
  bool recompute_, any_, thorough_;
  int all_plans_, family_plans_;
  const Plan* swapping_;
  PlanContest contest_;
  Recomputer recomputer_;
  Trials trials_;
  LongVector<Droppable> droppable_;
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
