#include "train/memory_plan.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/bytes.h"
#include "base/error.h"
#include "memory/pack.h"
#include "memory/virtual_pool.h"
#include "plan/budget_error.h"
#include "plan/make_plan.h"
#include "tier/tier.h"
#include "train/packed_layout.h"

namespace penstock::training {
namespace {

using Clock = std::chrono::steady_clock;

/// Larger than any machine, small enough not to overflow.
constexpr std::int64_t kUnlimited = std::int64_t{1} << 50;

/// Plans the training graph, then the evaluation graph from the boundary that training leaves.
class Planner {
 public:
  Planner(const Program& program, const Options& options, MemoryPlan& result)
      : program_(program), result_(result), packed_(parse_pool(options.pool)) {
    options_.lms = {options.lms_threshold, std::max<std::int64_t>(1, options.lms_ahead),
                    std::max<std::int64_t>(1, options.lms_groupby)};
    if (!options.window.empty()) options_.window.window_bytes = parse_bytes(options.window, "--window");
    if (program.training) steps_.push_back(program.training.get());
    if (program.evaluation) steps_.push_back(program.evaluation.get());
    result_.map = run::map_slots(steps_);
    result_.packed = packed_;
  }

  /// What the pool takes if everything stays, with the rounding that a pool of that size has.
  std::int64_t keep_capacity() const {
    const auto& slots = result_.map.slot_bytes;
    std::int64_t capacity = std::accumulate(slots.begin(), slots.end(), std::int64_t{0});
    for (int round = 0; round < 3; ++round) {
      std::int64_t bytes = 0;
      for (const lower::Executable* step : steps_) {
        const plan::Problem problem = problem_of(*step, capacity, kUnlimited, std::nullopt);
        bytes = std::max(bytes, plan::keep_bytes(problem) + problem.fixed_bytes);
      }
      capacity = bytes;
    }
    return capacity;
  }

  /// Throws BudgetError with the capacity that might do.
  void plan(plan::PolicyKind policy, std::int64_t capacity_bytes) {
    options_.policy = policy;
    const std::int64_t rule_bytes = std::min(capacity_bytes, keep_capacity());
    if (packed_) return plan_packed(rule_bytes, capacity_bytes);
    plan_steps(rule_bytes, capacity_bytes);
    result_.capacity_bytes = result_.planned_peak_bytes;
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
  static bool parse_pool(const std::string& text) {
    if (text != "virtual" && text != "packed") {
      throw UserError("--pool '" + text + "' is not known; there are virtual and packed");
    }
    return text == "packed";
  }

  plan::Problem problem_of(const lower::Executable& step, std::int64_t rule_bytes,
                           std::int64_t capacity_bytes, const std::optional<plan::Boundary>& boundary) const {
    plan::PoolRule pool;
    if (packed_) {
      pool.footprint_bytes = packed_bytes;
      pool.swappable = [](ir::StorageId, std::int64_t bytes) { return bytes >= kTierAlignment; };
    } else {
      const VirtualPoolRule rule(rule_bytes);
      pool.fixed_bytes = rule.fixed_bytes(result_.map.slot_bytes);
      pool.footprint_bytes = [rule](std::int64_t bytes) { return rule.footprint_bytes(bytes); };
      pool.swappable = [rule](ir::StorageId, std::int64_t bytes) { return !rule.is_small(bytes); };
    }
    pool.budget_bytes = capacity_bytes - pool.fixed_bytes;
    return plan::make_problem(step.graph, step.scratch_bytes, pool, result_.map.storage_bytes(), boundary);
  }

  void plan_steps(std::int64_t rule_bytes, std::int64_t capacity_bytes) {
    result_.rule_bytes = rule_bytes;
    result_.planned_peak_bytes = 0;
    std::optional<plan::Boundary> boundary;
    for (const lower::Executable* step : steps_) {
      const plan::Problem problem = problem_of(*step, rule_bytes, capacity_bytes, boundary);
      try {
        plan::Plan made = plan::make_plan(problem, options_);
        result_.planned_peak_bytes =
            std::max(result_.planned_peak_bytes, made.summary.peak_bytes + problem.fixed_bytes);
        boundary = plan::settled(made.boundary);
        (step == program_.training.get() ? result_.training : result_.evaluation) = std::move(made);
      } catch (const plan::BudgetError& error) {
        throw plan::BudgetError(error.policy(), error.needed_bytes() + problem.fixed_bytes, capacity_bytes);
      }
    }
  }

  /// Offsets leave gaps, so the plan gets less than the arena: as much as makes the arena fit.
  void plan_packed(std::int64_t rule_bytes, std::int64_t capacity_bytes) {
    const std::string policy = plan::policy_name(options_.policy);
    for (std::int64_t given = capacity_bytes;;) {
      try {
        plan_steps(rule_bytes, given);
      } catch (const plan::BudgetError&) {
        if (given == capacity_bytes) throw;
        throw plan::BudgetError(policy, capacity_bytes + capacity_bytes / 32, capacity_bytes);
      }
      std::vector<PlannedStep> planned;
      if (program_.training) planned.push_back({program_.training.get(), &*result_.training});
      if (program_.evaluation) planned.push_back({program_.evaluation.get(), &*result_.evaluation});
      const Packing packing = pack_plans(result_.map, planned);
      result_.packed_offsets = packing.offsets;
      result_.capacity_bytes = result_.planned_peak_bytes = packing.arena_bytes;
      if (packing.arena_bytes <= capacity_bytes) return;
      if (options_.policy == plan::PolicyKind::keep) {
        throw plan::BudgetError(policy, packing.arena_bytes, capacity_bytes);
      }
      given -= std::max<std::int64_t>((packing.arena_bytes - capacity_bytes) / 2, capacity_bytes / 64);
    }
  }

  const Program& program_;
  MemoryPlan& result_;
  bool packed_;
  plan::PlanOptions options_;
  std::vector<const lower::Executable*> steps_;
};

}  // namespace

std::int64_t MemoryPlan::overhead_bytes() const {
  return std::accumulate(overhead.begin(), overhead.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& tag) { return sum + tag.second; });
}

MemoryPlan plan_memory(const Program& program, const Options& options, std::int64_t budget_bytes,
                       const Overhead& overhead) {
  const auto begin = Clock::now();
  MemoryPlan result;
  result.budget_bytes = budget_bytes;
  result.overhead = overhead;
  Planner planner(program, options, result);
  const std::int64_t overhead_bytes = result.overhead_bytes();
  const std::int64_t capacity = budget_bytes - overhead_bytes;
  result.in_memory_bytes = planner.keep_capacity() + overhead_bytes;
  const bool fits = result.in_memory_bytes <= budget_bytes;
  const plan::PolicyKind policy = options.policy.empty()
                                      ? fits ? plan::PolicyKind::keep : plan::PolicyKind::window
                                      : plan::parse_policy(options.policy);
  result.policy = plan::policy_name(policy);
  try {
    if (capacity < kMiB) throw plan::BudgetError(result.policy, kMiB, capacity);
    planner.plan(policy, capacity);
  } catch (const plan::BudgetError& error) {
    const std::int64_t needed = planner.smallest_capacity(policy, error.needed_bytes());
    throw plan::BudgetError(result.policy, needed + overhead_bytes, budget_bytes);
  }
  result.plan_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return result;
}

}  // namespace penstock::training
