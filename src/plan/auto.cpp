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

  void try_recomputations() {
    if (!best_swaps_) return;
    const SwapSet swaps = *best_swaps_;
    std::vector<Recomputation> all = find_recomputations(problem_, profile_);
    std::erase_if(all, [&](const Recomputation& r) {
      return !swaps.contains(r.storage, static_cast<std::size_t>(r.access) - 1);
    });
    const auto seconds_per_byte = [&](const Recomputation& r) {
      return r.seconds / static_cast<double>(problem_.storage(r.storage).size_bytes);
    };
    std::stable_sort(all.begin(), all.end(), [&](const Recomputation& a, const Recomputation& b) {
      return seconds_per_byte(a) < seconds_per_byte(b);
    });
    for (const double part : {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0}) {
      if (is_done()) return;
      const auto count = static_cast<std::size_t>(part * static_cast<double>(all.size()));
      std::vector<Rerun> reruns;
      for (std::size_t i = 0; i < count; ++i) append(reruns, all[i]);
      try_swaps(reruns);
    }
  }

  void append(std::vector<Rerun>& reruns, const Recomputation& r) const {
    const ir::OpId before = problem_.storage(r.storage).accesses[static_cast<std::size_t>(r.access)].op;
    for (const ir::OpId op : r.ops) {
      const Rerun rerun{op, before};
      if (std::find(reruns.begin(), reruns.end(), rerun) == reruns.end()) reruns.push_back(rerun);
    }
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
