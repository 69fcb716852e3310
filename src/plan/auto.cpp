#include "plan/auto.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"
#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/evictions.h"
#include "plan/policies.h"
#include "plan/reruns.h"
#include "plan/timed_walk.h"

namespace penstock::plan {
namespace {

class Search {
 public:
  Search(const Problem& problem, const Profile& profile, const AutoOptions& options)
      : problem_(problem), profile_(profile), options_(options) {
    for (const auto& seconds : profile.op_seconds) compute_seconds_ += seconds[0];
  }

  Plan search() {
    try_policy([&] { return plan_window(problem_); });
    try_policy([&] { return plan_lms(problem_); });
    if (!problem_.boundary && !is_done()) {
      try_swaps({});
      if (options_.recompute) try_recomputations();
    }
    if (!best_) throw BudgetError("auto", smallest_bytes(problem_), problem_.budget_bytes);
    best_->policy = "auto";
    return std::move(*best_);
  }

 private:
  /// Within a thousandth of compute alone, which no plan beats.
  bool is_done() const { return best_ && best_seconds_ <= 1.001 * compute_seconds_; }

  template <typename Make>
  void try_policy(const Make& make) {
    try {
      consider(make());
    } catch (const BudgetError&) {
      // Another policy may do with less.
    }
  }

  bool consider(Plan plan) {
    const CheckResult result = check(problem_, plan);
    require(result.ok, result.message.c_str());
    plan.summary = result.summary;
    const double seconds = simulate(problem_, plan, profile_).step_seconds;
    if (best_ && seconds >= best_seconds_) return false;
    best_seconds_ = seconds;
    best_ = std::move(plan);
    return true;
  }

  /// Plans the step with these ops run again, in a few ways.
  void try_swaps(const std::vector<Rerun>& reruns) {
    const Problem longer = with_reruns(problem_, reruns);
    for (const double power : {1.0, 0.5, 2.0, 0.0}) {
      for (const double settle : {1.0, 3.0}) {
        EvictionOptions evictions;
        evictions.distance_power = power;
        evictions.settle_factor = settle;
        const SwapSet swaps = choose_evictions(longer, profile_, evictions);
        if (try_walk(longer, swaps)) {
          best_swaps_ = swaps;
          best_reruns_ = reruns;
        }
        if (is_done()) return;
      }
    }
  }

  bool try_walk(const Problem& longer, const SwapSet& swaps) {
    TimedWalk open(longer, profile_, swaps);
    if (!open.walk()) return false;
    TimedWalk closed(longer, profile_, swaps, open.end());
    return closed.walk() && consider(closed.finish("auto"));
  }

  /// A gap whose value can be made anew instead.
  struct Droppable {
    ir::StorageId storage = ir::kNone;
    std::size_t access = 0;
    double seconds_per_byte = 0;
  };

  void try_recomputations() {
    if (!best_swaps_) return;
    Recomputer recomputer(problem_);
    std::vector<Droppable> all = droppable(recomputer, *best_swaps_);
    for (int part = 1; part <= 16 && !is_done(); ++part) {
      const std::size_t count = all.size() * static_cast<std::size_t>(part) / 16;
      SwapSet dropped(problem_);
      for (std::size_t i = 0; i < count; ++i) dropped.set(all[i].storage, all[i].access, true);
      try_swaps(recomputer.reruns(dropped));
    }
  }

  /// Gaps that are swapped now, the cheapest to recompute first.
  std::vector<Droppable> droppable(Recomputer& recomputer, const SwapSet& swaps) const {
    std::vector<Droppable> found;
    for (std::size_t s = 0; s < problem_.storages.size(); ++s) {
      const auto storage = static_cast<ir::StorageId>(s);
      for (std::size_t k = 0; k < problem_.storages[s].accesses.size(); ++k) {
        if (!swaps.contains(storage, k)) continue;
        const std::vector<ir::OpId> ops = recomputer.chain(storage, k);
        if (ops.empty()) continue;
        double seconds = 0;
        for (const ir::OpId op : ops) seconds += profile_.seconds(op);
        found.push_back({storage, k, seconds / static_cast<double>(problem_.storages[s].size_bytes)});
      }
    }
    std::stable_sort(found.begin(), found.end(), [](const Droppable& a, const Droppable& b) {
      return a.seconds_per_byte < b.seconds_per_byte;
    });
    return found;
  }

  const Problem& problem_;
  const Profile& profile_;
  const AutoOptions& options_;
  double compute_seconds_ = 0;
  std::optional<Plan> best_;
  double best_seconds_ = std::numeric_limits<double>::infinity();
  std::optional<SwapSet> best_swaps_;
  std::vector<Rerun> best_reruns_;
};

}  // namespace

Plan plan_auto(const Problem& problem, const Profile& profile, const AutoOptions& options) {
  if (keep_bytes(problem) <= problem.budget_bytes) {
    Plan plan = plan_keep(problem);
    plan.policy = "auto";
    return plan;
  }
  return Search(problem, profile, options).search();
}

}  // namespace penstock::plan
