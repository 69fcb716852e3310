#include "train/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/bytes.h"
#include "base/error.h"
#include "memory/virtual_pool.h"
#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/policies.h"

namespace penstock::training {
namespace {

using Clock = std::chrono::steady_clock;

/// Larger than any machine, small enough not to overflow.
constexpr std::int64_t kUnlimited = std::int64_t{1} << 50;

struct Rounding {
  VirtualPoolRule rule;
  std::int64_t fixed_bytes;
};

Rounding rounding_of(const run::StorageMap& map, std::int64_t rule_bytes) {
  const VirtualPoolRule rule(rule_bytes);
  return {rule, rule.fixed_bytes(map.slot_bytes)};
}

plan::Problem make_problem(const lower::Executable& step, const run::StorageMap& map, const Rounding& rounding,
                           std::int64_t capacity_bytes, const std::optional<plan::Boundary>& boundary) {
  plan::PoolRule pool;
  pool.budget_bytes = capacity_bytes - rounding.fixed_bytes;
  pool.fixed_bytes = rounding.fixed_bytes;
  pool.footprint_bytes = [rule = rounding.rule](std::int64_t bytes) { return rule.footprint_bytes(bytes); };
  pool.swappable = [rule = rounding.rule](ir::StorageId, std::int64_t bytes) { return !rule.is_small(bytes); };
  return plan::make_problem(step.graph, step.scratch_bytes, pool, map.storage_bytes(), boundary);
}

/// Plans the training graph, then the evaluation graph from the boundary that training leaves.
class Planner {
 public:
  Planner(const Program& program, const Options& options, MemoryPlan& result)
      : program_(program), options_(options), result_(result) {}

  /// What the pool needs for `keep`, with the rounding rule that a pool of that size has.
  std::int64_t keep_capacity() const {
    const auto& slots = result_.map.slot_bytes;
    std::int64_t capacity = std::accumulate(slots.begin(), slots.end(), std::int64_t{0});
    for (int round = 0; round < 3; ++round) capacity = keep_capacity(capacity);
    return capacity;
  }

  /// The least capacity under which the policy can plan, found by asking it with the rule of `rule_bytes`.
  std::int64_t smallest_capacity(const std::string& policy, std::int64_t rule_bytes) const {
    if (policy == "keep") return keep_capacity();
    const Rounding rounding = rounding_of(result_.map, rule_bytes);
    std::int64_t bytes = 0;
    for (const lower::Executable* step : steps()) {
      const plan::Problem problem = make_problem(*step, result_.map, rounding, kUnlimited, std::nullopt);
      bytes = std::max(bytes, plan::smallest_bytes(problem) + rounding.fixed_bytes);
    }
    return bytes;
  }

  void plan(const std::string& policy, std::int64_t rule_bytes, std::int64_t capacity_bytes) {
    const Rounding rounding = rounding_of(result_.map, rule_bytes);
    result_.policy = policy;
    result_.rule_bytes = rule_bytes;
    std::int64_t peak_bytes = 0;
    std::optional<plan::Boundary> boundary;
    for (const lower::Executable* step : steps()) {
      const plan::Problem problem = make_problem(*step, result_.map, rounding, capacity_bytes, boundary);
      plan::Plan made = make(policy, problem);
      plan::prove(problem, made);
      peak_bytes = std::max(peak_bytes, made.summary.peak_bytes);
      boundary = plan::settled(made.boundary);
      (step == program_.training.get() ? result_.training : result_.evaluation) = std::move(made);
    }
    result_.planned_peak_bytes = peak_bytes + rounding.fixed_bytes;
    result_.capacity_bytes = std::min(capacity_bytes, result_.planned_peak_bytes);
  }

  std::vector<const lower::Executable*> steps() const {
    std::vector<const lower::Executable*> list;
    if (program_.training) list.push_back(program_.training.get());
    if (program_.evaluation) list.push_back(program_.evaluation.get());
    return list;
  }

 private:
  std::int64_t keep_capacity(std::int64_t rule_bytes) const {
    const Rounding rounding = rounding_of(result_.map, rule_bytes);
    std::int64_t bytes = 0;
    for (const lower::Executable* step : steps()) {
      const plan::Problem problem = make_problem(*step, result_.map, rounding, kUnlimited, std::nullopt);
      bytes = std::max(bytes, plan::keep_bytes(problem) + rounding.fixed_bytes);
    }
    return bytes;
  }

  plan::Plan make(const std::string& policy, const plan::Problem& problem) const {
    if (policy == "keep") return plan::plan_keep(problem);
    if (policy == "lms") {
      return plan::plan_lms(problem, {options_.lms_threshold, std::max<std::int64_t>(1, options_.lms_ahead),
                                      std::max<std::int64_t>(1, options_.lms_groupby)});
    }
    const std::int64_t window = options_.window.empty() ? 0 : parse_bytes(options_.window, "--window");
    return plan::plan_window(problem, {window});
  }

  const Program& program_;
  const Options& options_;
  MemoryPlan& result_;
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
  result.map = run::map_slots(planner.steps());

  const std::int64_t overhead_bytes = result.overhead_bytes();
  const std::int64_t capacity = budget_bytes - overhead_bytes;
  const std::int64_t keep_bytes = planner.keep_capacity();
  result.in_memory_bytes = keep_bytes + overhead_bytes;
  std::string policy = options.policy;
  if (policy.empty() || policy == "auto") policy = keep_bytes <= capacity ? "keep" : "window";
  if (policy != "keep" && policy != "lms" && policy != "window") {
    throw UserError(fmt::format("--policy '{}' is not known; there are keep, lms and window", policy));
  }
  try {
    if (capacity <= 0) throw plan::BudgetError(policy, planner.smallest_capacity(policy, kMiB), capacity);
    const std::int64_t rule_bytes = std::min(capacity, keep_bytes);
    planner.plan(policy, rule_bytes, capacity);
  } catch (const plan::BudgetError& error) {
    const std::int64_t needed = std::max(error.needed_bytes(), planner.smallest_capacity(policy, std::max(capacity, kMiB)));
    result.smallest_bytes = needed + overhead_bytes;
    throw plan::BudgetError(policy, result.smallest_bytes, budget_bytes);
  }
  result.plan_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return result;
}

}  // namespace penstock::training
