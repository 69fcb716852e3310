#include "train/memory_plan.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/bytes.h"
#include "base/error.h"
#include "memory/pack.h"
#include "memory/process.h"
#include "plan/budget_error.h"
#include "plan/estimate.h"
#include "plan/make_plan.h"
#include "plan/simulator.h"
#include "run/packed_layout.h"
#include "run/pool_rule.h"
#include "run/rehearsal.h"
#include "tier/tier.h"

namespace penstock::training {
namespace {

using Clock = std::chrono::steady_clock;

plan::PoolRule packed_rule(std::int64_t budget_bytes) {
  plan::PoolRule pool;
  pool.footprint_bytes = packed_bytes;
  pool.swappable = [](ir::StorageId, std::int64_t bytes) { return bytes >= kTierAlignment; };
  pool.budget_bytes = budget_bytes;
  pool.remaps = false;
  return pool;
}

/// The problem of a step in a pool of `capacity_bytes` that rounds as one of `rule_bytes` does.
plan::Problem step_problem(const lower::Executable& step, const run::StorageMap& map, bool packed,
                           std::int64_t rule_bytes, std::int64_t capacity_bytes,
                           const std::optional<plan::Boundary>& boundary) {
  return run::make_problem(
      step, map,
      packed ? packed_rule(capacity_bytes) : run::virtual_pool_rule(map, capacity_bytes, false, rule_bytes),
      boundary);
}

/// A plan that is packed takes about as much more than it was given as one that was given a little less.
constexpr double kLittleLess = 0.99;

/// Plans the training graph, then the evaluation graph from the boundary that training leaves.
class Planner {
 public:
  Planner(const Program& program, const Options& options, bool packed, MemoryPlan& result)
      : program_(program), result_(result), packed_(packed) {
    options_.dynamic_kernels = program.training && !program.training->variants.empty();
    options_.lms = {options.lms_threshold, std::max<std::int64_t>(1, options.lms_ahead),
                    std::max<std::int64_t>(1, options.lms_groupby)};
    if (!options.window.empty()) options_.window.window_bytes = parse_bytes(options.window, "--window");
    if (program.training) steps_.push_back(program.training.get());
    if (program.evaluation) steps_.push_back(program.evaluation.get());
    result_.map = run::map_slots(steps_);
    result_.packed = packed_;
    keep_capacity_bytes_ = find_keep_capacity();
  }

  /// What the pool takes if everything stays.
  std::int64_t keep_capacity() const { return keep_capacity_bytes_; }

  /// Throws BudgetError with the capacity that might do.
  void plan(plan::PolicyKind policy, std::int64_t capacity_bytes) {
    options_.policy = policy;
    const std::int64_t rule_bytes = std::min(capacity_bytes, keep_capacity_bytes_);
    if (packed_) return plan_packed(rule_bytes, capacity_bytes);
    plan_steps(rule_bytes, capacity_bytes);
    result_.capacity_bytes = result_.planned_peak_bytes;
    if (result_.profile) predict_with_moves();
  }

  /// The least capacity at which plan() succeeds, from `capacity_bytes` up.
  std::int64_t smallest_capacity(plan::PolicyKind policy, std::int64_t capacity_bytes) {
    for (std::int64_t capacity = std::max<std::int64_t>(capacity_bytes, kMiB);;) {
      try {
        plan(policy, capacity);
        return capacity;
      } catch (const plan::BudgetError& error) {
        capacity = std::max(error.needed_bytes(), capacity + 64 * kKiB);
      }
    }
  }

 private:
  /// With the rounding that a pool of that size has.
  std::int64_t find_keep_capacity() const {
    const auto& slots = result_.map.slot_bytes;
    std::int64_t capacity = std::accumulate(slots.begin(), slots.end(), std::int64_t{0});
    for (int round = 0; round < 3; ++round) {
      std::int64_t bytes = 0;
      for (const lower::Executable* step : steps_) {
        const plan::Problem problem = problem_of(*step, capacity, kUnlimitedBytes, std::nullopt);
        bytes = std::max(bytes, plan::keep_bytes(problem) + problem.fixed_bytes);
      }
      capacity = bytes;
    }
    return capacity;
  }

  plan::Problem problem_of(const lower::Executable& step, std::int64_t rule_bytes,
                           std::int64_t capacity_bytes, const std::optional<plan::Boundary>& boundary) const {
    return step_problem(step, result_.map, packed_, rule_bytes, capacity_bytes, boundary);
  }

  /// Evaluation's times are not measured: they are estimated, with the tier as it is.
  plan::Profile profile_of(const lower::Executable& step, const plan::Problem& problem) const {
    if (result_.profile && &step == program_.training.get()) return *result_.profile;
    plan::MachineEstimate machine;
    if (result_.profile) machine.tier = result_.profile->tier;
    return plan::estimate_profile(problem, machine);
  }

  void plan_steps(std::int64_t rule_bytes, std::int64_t capacity_bytes) {
    result_.rule_bytes = rule_bytes;
    result_.planned_peak_bytes = 0;
    std::optional<plan::Boundary> boundary;
    for (const lower::Executable* step : steps_) {
      const plan::Problem problem = problem_of(*step, rule_bytes, capacity_bytes, boundary);
      try {
        const plan::Profile profile = profile_of(*step, problem);
        options_.profile = &profile;
        plan::Plan made = plan::make_plan(problem, options_);
        if (result_.profile && step == program_.training.get()) {
          result_.predicted_step_seconds = plan::simulate(problem, made, profile).step_seconds;
        }
        result_.planned_peak_bytes =
            std::max(result_.planned_peak_bytes, made.summary.peak_bytes + problem.fixed_bytes);
        boundary = plan::settled(made.boundary);
        (step == program_.training.get() ? result_.training : result_.evaluation) = std::move(made);
      } catch (const plan::BudgetError& error) {
        throw plan::BudgetError(error.policy(), error.needed_bytes() + problem.fixed_bytes, capacity_bytes);
      }
    }
  }

  /// How often a plan moves memory is known once it is made.
  void predict_with_moves() {
    result_.profile = with_moves(program_, result_, std::move(*result_.profile));
    result_.predicted_step_seconds =
        plan::simulate(planned_problem(program_, result_), *result_.training, *result_.profile).step_seconds;
  }

  /// Offsets leave gaps, so the plan gets less than the arena: about as much as makes the arena fit. What an
  /// earlier policy was given is where the next begins.
  void plan_packed(std::int64_t rule_bytes, std::int64_t capacity_bytes) {
    const std::string policy = plan::policy_name(options_.policy);
    const std::int64_t step_bytes = capacity_bytes / 32;
    std::optional<MemoryPlan> best;
    std::int64_t too_much = capacity_bytes + 1, too_little = 0, least_arena = kUnlimitedBytes;
    std::int64_t given = packed_given_ > 0 ? std::min(packed_given_, capacity_bytes) : capacity_bytes;
    while (given < too_much && given > too_little &&
           (given == capacity_bytes || too_much - too_little > step_bytes)) {
      std::int64_t next = 0;
      try {
        plan_steps(rule_bytes, given);
        const std::int64_t arena_bytes = pack_memory(program_, result_);
        const double share = static_cast<double>(capacity_bytes) / static_cast<double>(arena_bytes);
        next = static_cast<std::int64_t>(static_cast<double>(given) * share * kLittleLess);
        if (arena_bytes <= capacity_bytes) {
          const bool is_first = !best && too_much > capacity_bytes;
          result_.packed_given_bytes = packed_given_ = too_little = given;
          best = result_;
          // Where the first fits with much to spare, one more is tried; none after one that was too large.
          if (!is_first || next < given + step_bytes) break;
        } else {
          if (best) break;
          if (options_.policy == plan::PolicyKind::keep)
            throw plan::BudgetError(policy, arena_bytes, capacity_bytes);
          too_much = given;
          least_arena = std::min(least_arena, arena_bytes);
        }
      } catch (const plan::BudgetError&) {
        if (given == capacity_bytes) throw;
        too_little = given;
      }
      given = next > too_little && next < too_much ? next : (too_little + too_much) / 2;
    }
    if (!best) throw plan::BudgetError(policy, least_arena, capacity_bytes);
    result_ = std::move(*best);
  }

  const Program& program_;
  MemoryPlan& result_;
  bool packed_;
  std::int64_t keep_capacity_bytes_ = 0;
  std::int64_t packed_given_ = 0;
  plan::PlanOptions options_;
  std::vector<const lower::Executable*> steps_;
};

}  // namespace

std::int64_t MemoryPlan::overhead_bytes() const {
  return std::accumulate(overhead.begin(), overhead.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& tag) { return sum + tag.second; });
}

namespace {

/// By so much kernels are slower in the virtual pool, where pages that were moved in parts are small ones.
constexpr double kSmallPages = 0.03;

/// What every policy plans with: the process's share taken off, refusals in terms of the whole budget.
MemoryPlan plan_in_pool(const Program& program, const Options& options, bool packed,
                        std::int64_t budget_bytes, const Overhead& overhead, const ProfileSource& profile,
                        bool only_whether) {
  const auto begin = Clock::now();
  MemoryPlan result;
  result.budget_bytes = budget_bytes;
  result.overhead = overhead;
  Planner planner(program, options, packed, result);
  const std::int64_t overhead_bytes = result.overhead_bytes();
  const std::int64_t capacity = budget_bytes - overhead_bytes;
  result.in_memory_bytes = planner.keep_capacity() + overhead_bytes;
  const bool fits = result.in_memory_bytes <= budget_bytes;
  const plan::PolicyKind policy = options.policy.empty() && fits ? plan::PolicyKind::keep
                                  : options.policy.empty()       ? plan::PolicyKind::automatic
                                                                 : plan::parse_policy(options.policy);
  result.policy = plan::policy_name(policy);
  // Whatever `window` plans, `auto` does, at once.
  const plan::PolicyKind first = policy == plan::PolicyKind::automatic ? plan::PolicyKind::window : policy;
  try {
    if (capacity < kMiB) throw plan::BudgetError(result.policy, kMiB, capacity);
    planner.plan(first, capacity);
  } catch (const plan::BudgetError& error) {
    const std::int64_t needed = only_whether ? 0 : planner.smallest_capacity(first, error.needed_bytes());
    throw plan::BudgetError(result.policy, needed + overhead_bytes, budget_bytes);
  }
  if (only_whether) return result;
  const double first_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const bool timeless =
      policy == plan::PolicyKind::keep && (!program.training || program.training->variants.empty());
  if (profile && program.training && !timeless) result.profile = profile();
  const auto again = Clock::now();
  result.earlier_peak_bytes = process_memory().peak_resident_bytes;
  const std::int64_t before_bytes = reset_peak_resident() ? process_memory().resident_bytes : 0;
  if (first != policy) result.first = result.training;
  if (first != policy || result.profile) planner.plan(policy, capacity);
  if (before_bytes > 0) result.planner_bytes = process_memory().peak_resident_bytes - before_bytes;
  result.plan_seconds = first_seconds + std::chrono::duration<double>(Clock::now() - again).count();
  return result;
}

bool parse_pool(const std::string& text, const char* pool) {
  if (text != "auto" && text != "virtual" && text != "packed") {
    throw UserError("--pool '" + text + "' is not known; there are auto, virtual and packed");
  }
  return text == pool;
}

/// A plan that waits and computes again for so little that the virtual pool has no better one.
bool hardly_worse_than_compute(const Program& program, const MemoryPlan& plan) {
  if (!plan.profile) return plan.policy == "keep";
  const plan::Simulation simulation =
      plan::simulate(planned_problem(program, plan), *plan.training, *plan.profile);
  return simulation.stall_seconds + simulation.recompute_seconds < kSmallPages * simulation.step_seconds;
}

/// Pool `auto` is the packed one, where nothing moves, unless the virtual one, which holds more, has a faster
/// plan.
MemoryPlan plan_with(const Program& program, const Options& options, std::int64_t budget_bytes,
                     const Overhead& overhead, const ProfileSource& profile, bool only_whether) {
  const bool packed = parse_pool(options.pool, "packed");
  const auto plan_in = [&](bool in_packed) {
    return plan_in_pool(program, options, in_packed, budget_bytes, overhead, profile, only_whether);
  };
  if (only_whether || !parse_pool(options.pool, "auto")) return plan_in(packed);
  std::optional<MemoryPlan> first;
  try {
    // Whether it fits is asked first: a refusal would search for the smallest budget, which nobody reads
    // here.
    plan_in_pool(program, options, true, budget_bytes, overhead, {}, true);
    first = plan_in(true);
    first->in_memory_bytes = in_memory_bytes(program, options, overhead);
  } catch (const plan::BudgetError&) {
  }
  if (first && hardly_worse_than_compute(program, *first)) return std::move(*first);
  if (first && first->policy != "keep") {
    try {
      plan_in_pool(program, options, false, budget_bytes, overhead, {}, true);
    } catch (const plan::BudgetError&) {
      return std::move(*first);
    }
  }
  MemoryPlan second = plan_in(false);
  if (!first) return second;
  const bool better = second.profile && first->profile
                          ? second.predicted_step_seconds * (1 + kSmallPages) < first->predicted_step_seconds
                          : second.policy == "keep" && first->policy != "keep";
  MemoryPlan& best = better ? second : *first;
  best.plan_seconds = first->plan_seconds + second.plan_seconds;
  best.planner_bytes = std::max(first->planner_bytes, second.planner_bytes);
  best.earlier_peak_bytes = std::max(first->earlier_peak_bytes, second.earlier_peak_bytes);
  return std::move(best);
}

}  // namespace

MemoryPlan plan_memory(const Program& program, const Options& options, std::int64_t budget_bytes,
                       const Overhead& overhead, const ProfileSource& profile) {
  return plan_with(program, options, budget_bytes, overhead, profile, false);
}

std::int64_t in_memory_bytes(const Program& program, const Options& options, const Overhead& overhead) {
  MemoryPlan plan;
  plan.overhead = overhead;
  return Planner(program, options, options.pool == "packed", plan).keep_capacity() + plan.overhead_bytes();
}

bool fits_memory(const Program& program, const Options& options, std::int64_t budget_bytes,
                 const Overhead& overhead) {
  try {
    plan_with(program, options, budget_bytes, overhead, {}, true);
    return true;
  } catch (const plan::BudgetError&) {
    return false;
  }
}

std::int64_t pack_memory(const Program& program, MemoryPlan& plan) {
  std::vector<run::PlannedStep> steps;
  if (plan.training) steps.push_back({program.training.get(), &*plan.training});
  if (plan.evaluation) steps.push_back({program.evaluation.get(), &*plan.evaluation});
  run::PackedLayout layout = run::pack_plans(plan.map, steps);
  plan.packed_homes = std::move(layout.homes);
  if (plan.evaluation) plan.evaluation->offsets = std::move(layout.offsets.back());
  if (plan.training) plan.training->offsets = std::move(layout.offsets.front());
  return plan.capacity_bytes = plan.planned_peak_bytes = layout.arena_bytes;
}

plan::Problem planned_problem(const Program& program, const MemoryPlan& plan) {
  return step_problem(*program.training, plan.map, plan.packed, plan.rule_bytes, plan.capacity_bytes,
                      std::nullopt);
}

plan::Profile with_moves(const Program& program, const MemoryPlan& plan, plan::Profile profile) {
  if (!plan.packed) {
    profile.host.moves_each = run::moves_each(*program.training, *plan.training, plan.map,
                                              VirtualPoolRule(plan.rule_bytes), plan.capacity_bytes);
  }
  return profile;
}

plan::Plan plan_evaluation(const Program& program, const MemoryPlan& plan, const plan::Boundary& boundary) {
  plan::PlanOptions options;
  options.policy = plan::PolicyKind::window;
  return plan::make_plan(step_problem(*program.evaluation, plan.map, plan.packed, plan.rule_bytes,
                                      plan.capacity_bytes, boundary),
                         options);
}

plan::Problem problem_again(const Program& program, const MemoryPlan& now) {
  if (!now.packed) {
    return run::make_problem(*program.training, now.map,
                             run::virtual_pool_rule(now.map, now.capacity_bytes, true, now.rule_bytes),
                             std::nullopt);
  }
  plan::PoolRule pool = packed_rule(now.packed_given_bytes);
  pool.swappable = [&](ir::StorageId storage, std::int64_t) {
    return now.map.extent[static_cast<std::size_t>(storage)] >= 0;
  };
  return run::make_problem(*program.training, now.map, pool, std::nullopt);
}

PlannedAgain plan_again(const Program& program, const MemoryPlan& now, const plan::Profile& profile) {
  plan::PlanOptions options;
  options.policy = plan::PolicyKind::automatic;
  options.profile = &profile;
  options.dynamic_kernels = !program.training->variants.empty();
  PlannedAgain again{plan::make_plan(problem_again(program, now), options), {}};
  if (!now.packed) return again;
  std::vector<std::int64_t> homes(now.packed_homes.size(), -1);
  for (const auto* plan : {&now.training, &now.evaluation}) {
    if (!*plan) continue;
    for (const plan::Standing& place : (*plan)->boundary) {
      const auto slot = static_cast<std::size_t>(place.storage);
      if (place.resident) homes[slot] = now.packed_homes[slot];
    }
  }
  const run::PlannedStep step{program.training.get(), &again.training};
  run::PackedLayout layout = run::pack_plans(now.map, {&step, 1}, std::move(homes));
  if (layout.arena_bytes > now.capacity_bytes)
    throw plan::BudgetError(again.training.policy, layout.arena_bytes, now.capacity_bytes);
  again.training.offsets = std::move(layout.offsets.front());
  again.packed_homes = std::move(layout.homes);
  return again;
}

}  // namespace penstock::training
