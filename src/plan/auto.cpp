#include "plan/auto.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"
#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/checkpoints.h"
#include "plan/evictions.h"
#include "plan/policies.h"
#include "plan/price_update.h"
#include "plan/reruns.h"
#include "plan/timed_walk.h"

namespace penstock::plan {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class Search {
 public:
  Search(const Problem& problem, const Profile& profile, const AutoOptions& options)
      : problem_(problem),
        profile_(profile),
        options_(options),
        recomputer_(problem),
        recompute_seconds_(problem, kNever) {
    for (const auto& seconds : profile.op_seconds) compute_seconds_ += seconds[0];
  }

  Plan search() {
    try_policy([&] { return plan_window(problem_); });
    try_policy([&] { return plan_lms(problem_); });
    if (!problem_.boundary) {
      bid(false);
      if (options_.recompute) {
        price_recomputations();
        try_checkpoints();
        bid(true);
      }
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
    if (is_done()) return;
    try {
      consider(make(), false);
    } catch (const BudgetError&) {
      // Another policy may do with less.
    }
  }

  Simulation consider(Plan plan, bool with_timeline) {
    const CheckResult result = check(problem_, plan);
    require(result.ok, result.message.c_str());
    plan.summary = result.summary;
    Simulation simulation = simulate(problem_, plan, profile_, with_timeline);
    if (!best_ || simulation.step_seconds < best_seconds_) {
      best_seconds_ = simulation.step_seconds;
      best_ = std::move(plan);
    }
    return simulation;
  }

  /// Plans again and again at prices that follow where the last plan stalled.
  void bid(bool recompute) {
    TransferPrices prices;
    prices.write.assign(problem_.ops.size(), 0.02);
    prices.read = prices.write;
    const int rounds =
        std::clamp<int>(static_cast<int>(60000 / (problem_.ops.size() + 1)), 8, options_.max_plans / 4);
    for (int round = 0; round < rounds && !is_done(); ++round) {
      Evictions chosen =
          choose_evictions(problem_, profile_, prices, recompute ? &recompute_seconds_ : nullptr);
      const Problem longer = with_reruns(problem_, recomputer_.reruns(chosen.dropped));
      const SwapSet swaps = choose_evictions(longer, profile_, prices, nullptr).swapped;
      TimedWalk open(longer, profile_, swaps);
      if (!open.walk()) return;
      TimedWalk closed(longer, profile_, swaps, open.end());
      if (!closed.walk()) return;
      const Simulation simulation = consider(closed.finish("auto"), true);
      if (getenv("DBG"))
        fprintf(stderr, "  round %d: %.3f recompute %.3f stall %.3f; best %.3f\n", round,
                simulation.step_seconds, simulation.recompute_seconds, simulation.stall_seconds,
                best_seconds_);
      update_prices(simulation, prices);
    }
  }

  /// Drops what can be computed again between checkpoints, more or less of it, the cheapest first.
  void try_checkpoints() {
    struct Droppable {
      ir::StorageId storage;
      std::size_t access;
      double seconds_per_byte;
    };
    for (int segments = 0; segments <= 128; segments = segments == 0 ? 4 : 2 * segments) {
      if (is_done()) return;
      const SwapSet checkpoints = checkpoint_gaps(problem_, profile_, segments);
      std::vector<Droppable> all;
      for (std::size_t s = 0; s < problem_.storages.size(); ++s) {
        const auto storage = static_cast<ir::StorageId>(s);
        for (std::size_t k = 0; k < problem_.storages[s].accesses.size(); ++k) {
          if (recompute_seconds_.at(storage, k) == kNever || checkpoints.contains(storage, k)) continue;
          if (problem_.graph->op(problem_.storages[s].accesses[k].op).phase == ir::Phase::backward ||
              problem_.graph->op(problem_.storages[s].accesses[k + 1].op).phase != ir::Phase::backward) continue;
          all.push_back(
              {storage, k,
               recompute_seconds_.at(storage, k) / static_cast<double>(problem_.storages[s].size_bytes)});
        }
      }
      std::stable_sort(all.begin(), all.end(), [](const Droppable& a, const Droppable& b) {
        return a.seconds_per_byte < b.seconds_per_byte;
      });
      for (int part = 1; part <= 8 && !is_done(); ++part) {
        SwapSet dropped(problem_);
        for (std::size_t i = 0; i < all.size() * static_cast<std::size_t>(part) / 8; ++i)
          dropped.set(all[i].storage, all[i].access, 1);
        TransferPrices prices;
        prices.write.assign(problem_.ops.size(), 0.02);
        prices.read = prices.write;
        const std::vector<Rerun> reruns = recomputer_.reruns(dropped);
        const Problem longer = with_reruns(problem_, reruns);
        const SwapSet swaps = choose_evictions(longer, profile_, prices, nullptr).swapped;
        TimedWalk open(longer, profile_, swaps);
        if (!open.walk()) continue;
        TimedWalk closed(longer, profile_, swaps, open.end());
        if (!closed.walk()) continue;
        const Simulation simulation = consider(closed.finish("auto"), false);
        if (getenv("DBG"))
          fprintf(stderr, "  segments %d part %d: %.3f recompute %.3f stall %.3f; best %.3f\n", segments,
                  part, simulation.step_seconds, simulation.recompute_seconds, simulation.stall_seconds,
                  best_seconds_);
      }
    }
  }

  void price_recomputations() {
    for (std::size_t s = 0; s < problem_.storages.size(); ++s) {
      const auto storage = static_cast<ir::StorageId>(s);
      for (std::size_t k = 0; k < problem_.storages[s].accesses.size(); ++k) {
        if (!is_needed_after(problem_.storages[s], k)) continue;
        const std::vector<ir::OpId> ops = recomputer_.chain(storage, k);
        if (ops.empty()) continue;
        double seconds = 0;
        for (const ir::OpId op : ops) seconds += profile_.seconds(op);
        recompute_seconds_.set(storage, k, seconds);
      }
    }
  }

  const Problem& problem_;
  const Profile& profile_;
  const AutoOptions& options_;
  Recomputer recomputer_;
  GapMap<double> recompute_seconds_;
  double compute_seconds_ = 0;
  std::optional<Plan> best_;
  double best_seconds_ = kNever;
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
