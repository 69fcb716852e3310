#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "plan/auto.h"
#include "plan/bound.h"
#include "plan/checker.h"
#include "plan/memory_cut.h"
#include "plan/policies.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"
#include "plan/reruns.h"
#include "plan/simulator.h"
#include "plan/timed_walk.h"

namespace penstock::plan {

/// The best plan of a small step by exhaustive search over what is dropped and made anew (every set of values
/// that can be), what is swapped (every set of gaps of the step that follows, state and boundary included)
/// and when copy-outs start (when the value is made, or when its memory is free); copy-ins start as early as
/// memory lets them, in the order of need. Branches are cut only where a part of the choice alone proves that
/// no completion is better, so within that space the optimum is exact.
///
/// What the space leaves out: other orders of the ops, copy-ins later or in another order than that of need,
/// and copy-outs at other times in between. On a tier whose directions do not disturb each other, an earlier
/// transfer never delays compute by itself: a read that is started only where its memory stays free until its
/// use can be moved ahead without anybody noticing, and of two reads in one lane the one needed first goes
/// first (an exchange argument); a write moved ahead only frees memory earlier, as far as it does not
/// overtake another. Where the directions share the tier this is no proof; the proved lower bound (bound.h)
/// stands beside the search for that reason: the true optimum lies between the two.
class OptimumSearch {
 public:
  /// `max_plans`: it gives up beyond.
  OptimumSearch(const Problem& problem, const Profile& profile, std::int64_t max_plans)
      : problem_(problem), profile_(profile), recomputer_(problem), plans_left_(max_plans) {
    for (std::size_t op = 0; op < profile.op_seconds.size(); ++op)
      compute_seconds_ += profile.op_seconds.at(op, 0);
  }

  /// The least seconds of a step, `upper_seconds` if nothing is better; nothing if it gave up.
  std::optional<double> search(double upper_seconds) {
    best_ = upper_seconds;
    for (std::size_t s = 0; s < problem_.storages.size(); ++s) {
      for (std::size_t k = 0; k + 1 < problem_.storages[s].accesses.size(); ++k) {
        const auto storage = static_cast<ir::StorageId>(s);
        const auto& accesses = problem_.storages[s].accesses;
        if (problem_.storages[s].footprint_bytes == 0 || accesses[k + 1].position - accesses[k].position < 2)
          continue;
        if (!is_needed_after(problem_.storages[s], k)) continue;
        const LongVector<ir::OpId> chain = recomputer_.chain(storage, k);
        if (!chain.empty()) droppable_.push_back({storage, k, chain.back()});
      }
    }
    SwapSet dropped(problem_);
    drop(dropped, 0, 0);
    return plans_left_ > 0 ? std::optional<double>(best_) : std::nullopt;
  }

 private:
  struct Gap {
    ir::StorageId storage;
    std::size_t access;
    ir::OpId maker = ir::kNone;  ///< the op that makes it anew
    std::int64_t first = 0, last = 0;
    bool wrap = false;
  };

  void drop(SwapSet& dropped, std::size_t next, double rerun_seconds) {
    if (plans_left_ <= 0 || compute_seconds_ + rerun_seconds >= best_) return;
    if (next == droppable_.size()) return swap_all(dropped);
    const Gap& gap = droppable_[next];
    drop(dropped, next + 1, rerun_seconds);
    dropped.set(gap.storage, gap.access, 1);
    // One run of an op may make several values anew: it counts once.
    int& counted = makers_[static_cast<std::size_t>(gap.maker)];
    const double seconds = counted++ == 0 ? profile_.seconds(gap.maker) : 0;
    drop(dropped, next + 1, rerun_seconds + seconds);
    --counted;
    dropped.set(gap.storage, gap.access, 0);
  }

  void swap_all(const SwapSet& dropped) {
    SwapSet made = dropped;
    const LongVector<Rerun> reruns = recomputer_.reruns(made);
    for (const Gap& gap : droppable_) {
      // What cannot be made anew after all: the smaller set is searched by itself.
      if (made.contains(gap.storage, gap.access) != dropped.contains(gap.storage, gap.access)) return;
    }
    longer_ = Step(problem_, reruns);
    longer_seconds_ = compute_seconds_;
    for (const Rerun& rerun : reruns) longer_seconds_ += profile_.seconds(rerun.op);
    if (longer_seconds_ >= best_) return;
    gaps_.clear();
    SwapSet swaps(longer_);
    for (std::size_t s = 0; s < longer_.storages(); ++s) {
      const StorageUses storage = longer_.storage(static_cast<ir::StorageId>(s));
      if (!storage.swappable || storage.footprint_bytes == 0) continue;
      for (std::size_t k = 0; k < storage.accesses.size(); ++k) {
        Gap gap{static_cast<ir::StorageId>(s), k};
        gap.wrap = is_wrap(storage, k);
        gap.first = storage.accesses[k].position + 1;
        gap.last = storage.accesses[gap.wrap ? 0 : k + 1].position - 1;
        if (!is_needed_after(storage, k) || (!gap.wrap && gap.last < gap.first)) continue;
        swaps.set(gap.storage, k, 1);
        gaps_.push_back(gap);
      }
    }
    std::stable_sort(gaps_.begin(), gaps_.end(), [&](const Gap& a, const Gap& b) {
      return longer_.storage(a.storage).footprint_bytes > longer_.storage(b.storage).footprint_bytes;
    });
    memory_ = base_memory(longer_, swaps);
    if (*std::max_element(memory_.begin(), memory_.end()) > problem_.budget_bytes) return;
    choose(swaps, 0, 0, 0);
  }

  bool add(const Gap& gap, int sign) {
    const std::int64_t bytes = sign * longer_.storage(gap.storage).footprint_bytes;
    bool fits = true;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(memory_.size()); ++i) {
      const bool covered = gap.wrap ? i >= gap.first || i <= gap.last : i >= gap.first && i <= gap.last;
      if (covered) memory_[static_cast<std::size_t>(i)] += bytes;
      fits = fits && memory_[static_cast<std::size_t>(i)] <= problem_.budget_bytes;
    }
    return fits;
  }

  /// Keeps or swaps each gap from `next` on; those before are decided, with so many bytes to be moved at
  /// least.
  void choose(SwapSet& swaps, std::size_t next, double read_bytes, double written_bytes) {
    for (const TierPrice& price : prices_) {
      if (price.read * read_bytes + price.write * written_bytes >= best_) return;
    }
    if (plans_left_ <= 0) return;
    if (next == gaps_.size()) return evaluate(swaps);
    const Gap& gap = gaps_[next];
    if (add(gap, 1)) {
      swaps.set(gap.storage, gap.access, 0);
      choose(swaps, next + 1, read_bytes, written_bytes);
      swaps.set(gap.storage, gap.access, 1);
    }
    add(gap, -1);
    const StorageUses storage = longer_.storage(gap.storage);
    const double bytes = static_cast<double>(storage.size_bytes);
    // Once for a storage: a value that is made anew may be on the tier already, and state that nobody changes
    // is not written at all.
    const bool made_here = storage.accesses[gap.access].writes;
    int& counted = written_[static_cast<std::size_t>(gap.storage)];
    const bool counts = made_here && counted == 0;
    counted += counts ? 1 : 0;
    choose(swaps, next + 1, read_bytes + bytes, written_bytes + (counts ? bytes : 0));
    counted -= counts ? 1 : 0;
  }

  void evaluate(const SwapSet& swaps) {
    for (const WriteStart start : {WriteStart::at_gap, WriteStart::at_birth}) {
      --plans_left_;
      TimedWalk open(longer_, profile_, swaps, {}, start);
      if (!open.walk()) return;
      TimedWalk closed(longer_, profile_, swaps, open.end(), start);
      if (!closed.walk()) continue;
      const Plan plan = closed.finish("optimum");
      best_ = std::min(best_, simulate(problem_, plan, profile_).step_seconds);
    }
  }

  const Problem& problem_;
  const Profile& profile_;
  Recomputer recomputer_;
  std::int64_t plans_left_;
  LongVector<TierPrice> prices_ = tier_prices(profile_.tier);
  double compute_seconds_ = 0, longer_seconds_ = 0;
  double best_ = 0;
  LongVector<Gap> droppable_, gaps_;
  LongVector<int> makers_ = LongVector<int>(problem_.ops.size(), 0);  ///< by op: dropped values it makes
  LongVector<int> written_ = LongVector<int>(problem_.storages.size(), 0);  ///< by storage: counted writes
  Step longer_{problem_};
  LongVector<std::int64_t> memory_;
};

/// A chain of layers without parameters, sizes and times at random: forward, and a backward that needs each
/// layer's input.
inline RandomStep random_chain(std::uint64_t seed, int layers) {
  Dice dice(seed);
  RandomStep step;
  ir::Graph& g = step.graph;
  g.name = "chain";
  const auto add = [&](ir::OpKind kind, ir::Phase phase, const std::string& name,
                       const LongVector<ir::TensorId>& inputs, ir::Role role) {
    const ir::TensorId made = g.add_tensor(name, ir::DType::f32, {dice.between(512, 8192)}, role);
    ir::Op op;
    op.kind = kind;
    op.phase = phase;
    op.name = name;
    op.inputs = inputs;
    op.outputs = {made};
    g.add_op(std::move(op));
    step.scratch_bytes.push_back(0);
    return made;
  };
  LongVector<ir::TensorId> x{add(ir::OpKind::input, ir::Phase::forward, "x", {}, ir::Role::input)};
  for (int l = 0; l < layers; ++l) {
    x.push_back(
        add(ir::OpKind::conv, ir::Phase::forward, "y" + std::to_string(l), {x.back()}, ir::Role::activation));
  }
  ir::TensorId dy = add(ir::OpKind::conv, ir::Phase::backward, "dloss", {x.back()}, ir::Role::gradient);
  for (int l = layers - 1; l >= 0; --l) {
    dy = add(ir::OpKind::conv, ir::Phase::backward, "dx" + std::to_string(l),
             {x[static_cast<std::size_t>(l)], dy}, ir::Role::gradient);
  }
  return step;
}

/// How far `auto` is from the optimum of one step, and from the proved bound: 0 is no gap.
struct OptimumGap {
  double to_optimum = 0;
  double to_bound = 0;
};

/// Gaps over small steps that do not fit in memory, half of them chains: the first `count` that the search
/// gets through. `given_up`: how many it did not, which are the larger ones.
inline LongVector<OptimumGap> optimum_gaps(std::size_t count, std::int64_t max_plans,
                                           std::uint64_t first_seed = 0, int* given_up = nullptr) {
  LongVector<OptimumGap> gaps;
  for (std::uint64_t seed = first_seed; gaps.size() < count && seed < first_seed + 20 * count; ++seed) {
    const RandomStep step = seed % 2 == 0
                                ? random_chain(seed, static_cast<int>(2 + seed / 2 % 7))
                                : random_step(seed, {static_cast<int>(1 + seed / 2 % 3), 8192, true});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(std::int64_t{1} << 40, 256));
    const Profile profile = random_profile(problem, seed, seed % 3 == 0 ? 1e8 : seed % 3 == 1 ? 3e7 : 1e7);
    const std::int64_t smallest = smallest_bytes(problem), in_memory = keep_bytes(problem);
    problem.budget_bytes = smallest + (in_memory - smallest) * static_cast<std::int64_t>(seed / 7 % 5) / 5;
    if (problem.budget_bytes >= in_memory) continue;
    Plan plan = plan_auto(problem, profile);
    prove(problem, plan);
    const double seconds = simulate(problem, plan, profile).step_seconds;
    const double bound_seconds = lower_bound(problem, profile).seconds;
    OptimumGap gap{0, seconds / bound_seconds - 1};
    if (gap.to_bound > 1e-9) {
      const std::optional<double> optimum = OptimumSearch(problem, profile, max_plans).search(seconds);
      if (!optimum) {
        if (given_up != nullptr) ++*given_up;
        continue;
      }
      gap.to_optimum = seconds / *optimum - 1;
    }
    gaps.push_back(gap);
  }
  return gaps;
}

/// The p-th part (0 to 1) of sorted values lies below it.
inline double quantile(LongVector<double> values, double p) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(p * static_cast<double>(values.size() - 1))];
}

}  // namespace penstock::plan
