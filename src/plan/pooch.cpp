#include <algorithm>
#include <optional>

#include "base/long_vector.h"
#include "plan/budget_error.h"
#include "plan/memory_curve.h"
#include "plan/policies.h"
#include "plan/reruns.h"
#include "plan/simulator.h"
#include "plan/timed_walk.h"

namespace penstock::plan {
namespace {

/// The search's work: so many ops planned and simulated in all, but no fewer plans than this.
constexpr int kPlannedOps = 90000;
constexpr int kFewestPlans = 12;
/// So many of the maps that promise most are tried before the search gives up.
constexpr std::size_t kTries = 24;
/// Up to so many exposed copy-ins are searched exhaustively.
constexpr std::size_t kExhaustive = 5;

enum class MapClass : std::uint8_t { keep, swap, recompute };

/// A value from its last use in forward to its first in backward: what PoocH calls a feature map.
struct FeatureMap {
  ir::StorageId storage = ir::kNone;
  std::size_t access = 0;
  std::int64_t first = 0, last = 0;  ///< positions it lies idle
  double rerun_seconds = 0;          ///< 0: it cannot be made anew
  double move_seconds = 0;           ///< out and in
};

/// One choice for all maps, and what its simulation shows.
struct Choice {
  LongVector<MapClass> classes;
  std::optional<Plan> plan;  ///< none: it does not fit
  double seconds = 0;
  LongVector<double> read_wait, write_wait;  ///< by map: how long compute waited for its transfers
};

class Pooch {
 public:
  Pooch(const Problem& problem, const Profile& profile)
      : problem_(problem),
        profile_(profile),
        step_(problem),
        recomputer_(problem),
        map_of_(problem.storages.size(), -1),
        plans_left_(std::max(kFewestPlans, kPlannedOps / (static_cast<int>(problem.ops.size()) + 1))) {
    find_maps();
  }

  Plan search() {
    best_ = evaluate(LongVector<MapClass>(maps_.size(), MapClass::swap));
    if (!best_.plan) {
      const LongVector<std::int64_t> bytes = base_memory(step_, swaps_of(step_, best_.classes));
      throw BudgetError("pooch", *std::max_element(bytes.begin(), bytes.end()), problem_.budget_bytes);
    }
    const Choice swapped = best_;
    keep_exposed_reads(swapped);
    keep_exposed_writes(swapped);
    recompute();
    best_.plan->policy = "pooch";
    return std::move(*best_.plan);
  }

 private:
  void find_maps() {
    const auto is_forward = [&](const Access& access) {
      return problem_.graph->op(access.position).phase == ir::Phase::forward;
    };
    for (std::size_t s = 0; s < problem_.storages.size(); ++s) {
      const StorageInfo& storage = problem_.storages[s];
      if (storage.carried || !storage.swappable || storage.footprint_bytes == 0) continue;
      for (std::size_t k = 0; k + 1 < storage.accesses.size(); ++k) {
        if (!is_forward(storage.accesses[k]) || is_forward(storage.accesses[k + 1]) ||
            !is_needed_after(storage, k))
          continue;
        FeatureMap map{static_cast<ir::StorageId>(s),        k, storage.accesses[k].position + 1,
                       storage.accesses[k + 1].position - 1, 0, 0};
        for (const ir::OpId op : recomputer_.chain(map.storage, k)) map.rerun_seconds += profile_.seconds(op);
        map.move_seconds = static_cast<double>(storage.size_bytes) *
                           (1 / profile_.tier.write_bandwidth + 1 / profile_.tier.read_bandwidth);
        if (map.first <= map.last) maps_.push_back(map);
      }
    }
    // From the output side: what is needed again first.
    std::stable_sort(maps_.begin(), maps_.end(),
                     [](const FeatureMap& a, const FeatureMap& b) { return a.last < b.last; });
    for (std::size_t m = 0; m < maps_.size(); ++m) {
      map_of_[static_cast<std::size_t>(maps_[m].storage)] = static_cast<std::int32_t>(m);
    }
  }

  SwapSet set_of(const Step& step, const LongVector<MapClass>& classes, MapClass wanted) const {
    SwapSet set(step);
    for (std::size_t m = 0; m < maps_.size(); ++m) {
      if (classes[m] == wanted) set.set(maps_[m].storage, maps_[m].access, 1);
    }
    return set;
  }

  SwapSet swaps_of(const Step& step, const LongVector<MapClass>& classes) const {
    return set_of(step, classes, MapClass::swap);
  }

  /// Times the step with these classes.
  Choice evaluate(LongVector<MapClass> classes) {
    --plans_left_;
    Choice choice;
    choice.classes = std::move(classes);
    SwapSet dropped = set_of(step_, choice.classes, MapClass::recompute);
    const Step longer(problem_, recomputer_.reruns(dropped));
    const SwapSet swaps = swaps_of(longer, choice.classes);
    TimedWalk walk(longer, profile_, swaps,
                   LongVector<AtBoundary>(problem_.storages.size(), AtBoundary::kept));
    if (!walk.walk()) return choice;
    choice.plan = walk.finish("pooch");
    const Simulation simulation = simulate(problem_, *choice.plan, profile_, true);
    choice.seconds = simulation.step_seconds;
    choice.read_wait.assign(maps_.size(), 0);
    choice.write_wait.assign(maps_.size(), 0);
    // A wait is followed by the transfer that it waited for.
    double waited = 0;
    for (const TimelineEvent& event : simulation.timeline) {
      if (event.action == Action::wait) {
        waited = event.end_seconds - event.start_seconds;
      } else if (event.action != Action::run) {
        const std::int32_t m = map_of_[static_cast<std::size_t>(event.id)];
        if (m >= 0) {
          (event.action == Action::swap_in ? choice.read_wait
                                           : choice.write_wait)[static_cast<std::size_t>(m)] += waited;
        }
        waited = 0;
      }
    }
    return choice;
  }

  /// Takes the choice if it is the best so far.
  bool take(Choice choice) {
    if (!choice.plan || choice.seconds >= best_.seconds) return false;
    best_ = std::move(choice);
    return true;
  }

  /// Keep or swap for the maps whose copy-in is exposed: all combinations of a few, otherwise one after the
  /// other from the output side.
  void keep_exposed_reads(const Choice& swapped) {
    LongVector<std::size_t> exposed;
    for (std::size_t m = 0; m < maps_.size(); ++m) {
      if (swapped.read_wait[m] > 0) exposed.push_back(m);
    }
    if (exposed.size() <= kExhaustive) {
      for (std::size_t bits = 1; bits < std::size_t{1} << exposed.size() && plans_left_ > 0; ++bits) {
        LongVector<MapClass> classes = swapped.classes;
        for (std::size_t i = 0; i < exposed.size(); ++i) {
          if ((bits >> i & 1U) != 0) classes[exposed[i]] = MapClass::keep;
        }
        take(evaluate(std::move(classes)));
      }
      return;
    }
    const int reserve = plans_left_ / 2;
    for (const std::size_t m : exposed) {
      if (plans_left_ <= reserve) return;
      LongVector<MapClass> classes = best_.classes;
      classes[m] = MapClass::keep;
      if (fits(classes)) take(evaluate(std::move(classes)));
    }
  }

  bool fits(const LongVector<MapClass>& classes) const {
    const LongVector<std::int64_t> bytes = base_memory(step_, swaps_of(step_, classes));
    return *std::max_element(bytes.begin(), bytes.end()) <= problem_.budget_bytes;
  }

  /// Keeps maps whose copy-out is exposed, from the output side, while they fit; then whatever else fits.
  void keep_exposed_writes(const Choice& swapped) {
    for (const bool exposed_only : {true, false}) {
      if (plans_left_ <= 0) return;
      LongVector<MapClass> classes = best_.classes;
      MemoryCurve memory(problem_.ops.size());
      memory.add_all(base_memory(step_, swaps_of(step_, classes)));
      for (std::size_t m = 0; m < maps_.size(); ++m) {
        const FeatureMap& map = maps_[m];
        const std::int64_t bytes = problem_.storage(map.storage).footprint_bytes;
        const bool wanted = !exposed_only || swapped.write_wait[m] > 0;
        if (!wanted || classes[m] != MapClass::swap) continue;
        if (memory.max(map.first, map.last) + bytes > problem_.budget_bytes) continue;
        memory.add(map.first, map.last, bytes);
        classes[m] = MapClass::keep;
      }
      take(evaluate(std::move(classes)));
    }
  }

  /// Turns swapped maps into recomputed ones while that gains: those first that save most of the tier's time
  /// for a second of recomputation. Several at once where there are too many to go one by one.
  void recompute() {
    const std::size_t batch = 1 + 3 * maps_.size() / static_cast<std::size_t>(std::max(1, plans_left_));
    while (plans_left_ > 0) {
      LongVector<std::pair<double, std::size_t>> promising;
      for (std::size_t m = 0; m < maps_.size(); ++m) {
        if (best_.classes[m] != MapClass::swap || maps_[m].rerun_seconds <= 0) continue;
        // Where the tier is busy, compute waits for some transfer or other: what counts is the tier's time.
        promising.emplace_back(-maps_[m].move_seconds / maps_[m].rerun_seconds, m);
      }
      std::sort(promising.begin(), promising.end());
      const LongVector<MapClass> classes = best_.classes;
      bool gained = false;
      for (std::size_t i = 0; i < promising.size() && i < kTries * batch && plans_left_ > 0 && !gained;
           i += batch) {
        LongVector<MapClass> tried = classes;
        for (std::size_t j = i; j < std::min(promising.size(), i + batch); ++j) {
          tried[promising[j].second] = MapClass::recompute;
        }
        gained = take(evaluate(std::move(tried)));
      }
      if (!gained) return;
    }
  }

  const Problem& problem_;
  const Profile& profile_;
  Step step_;  ///< without reruns
  Recomputer recomputer_;
  LongVector<FeatureMap> maps_;
  LongVector<std::int32_t> map_of_;  ///< by storage; -1: none
  int plans_left_;
  Choice best_;
};

}  // namespace

Plan plan_pooch(const Problem& problem, const Profile& profile) {
  const std::int64_t in_memory_bytes = keep_bytes(problem);
  if (in_memory_bytes <= problem.budget_bytes) {
    Plan plan = plan_keep(problem);
    plan.policy = "pooch";
    return plan;
  }
  // From a given boundary all state comes in first; then there is nothing between forward and backward.
  if (problem.boundary) throw BudgetError("pooch", in_memory_bytes, problem.budget_bytes);
  return Pooch(problem, profile).search();
}

}  // namespace penstock::plan
