#include "train/planned.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"
#include "plan/bound.h"
#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/estimate.h"
#include "plan/json.h"
#include "plan/policies.h"
#include "plan/simulator.h"
#include "tier/make_tier.h"

namespace penstock::training {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kSecondsPerDay = 86400;
/// What the process takes differs a little from run to run; the margin bears that much.
constexpr std::int64_t kMarginSlackBytes = 6 * kMiB;

std::int64_t swap_bytes(const MemoryPlan& plan) {
  run::StorageMap map = plan.map;
  std::vector<const plan::Plan*> plans{&*plan.training};
  if (plan.evaluation) plans.push_back(&*plan.evaluation);
  run::map_extents(map, plans);
  return std::accumulate(map.extent_bytes.begin(), map.extent_bytes.end(), std::int64_t{0});
}

}  // namespace

PlannedBudget describe_plan(const Program& program, const MemoryPlan& plan, const plan::Profile& profile,
                            double in_memory_step_seconds, std::int64_t batch) {
  const plan::Problem problem = planned_problem(program, plan);
  const plan::Simulation simulation = plan::simulate(problem, *plan.training, profile);
  const plan::Summary& summary = plan.training->summary;
  PlannedBudget row;
  row.budget_bytes = plan.budget_bytes;
  row.feasible = true;
  row.policy = plan.policy;
  row.overhead_bytes = plan.overhead_bytes();
  row.planned_peak_bytes = plan.planned_peak_bytes;
  row.predicted_step_seconds = simulation.step_seconds;
  row.compute_seconds = simulation.compute_seconds;
  row.recompute_seconds = simulation.recompute_seconds;
  row.stall_seconds = std::max(0.0, simulation.stall_seconds);
  row.swapped_out_bytes = summary.swapped_out_bytes;
  row.swapped_in_bytes = summary.swapped_in_bytes;
  row.swap_file_bytes = swap_bytes(plan);
  row.bound_seconds = bound_seconds(program, plan, profile);
  if (simulation.step_seconds > 0) {
    row.images_per_second = static_cast<double>(batch) / simulation.step_seconds;
    row.in_memory_share = in_memory_step_seconds / simulation.step_seconds;
    row.written_bytes_per_day =
        static_cast<double>(summary.swapped_out_bytes) * kSecondsPerDay / simulation.step_seconds;
  }
  return row;
}

double bound_seconds(const Program& program, const MemoryPlan& plan, const plan::Profile& profile) {
  // The pool takes no more than the plan's peak, but any other plan might have had all that the budget
  // leaves.
  plan::Problem problem = planned_problem(program, plan);
  problem.budget_bytes = plan.budget_bytes - plan.overhead_bytes() - problem.fixed_bytes;
  return plan::lower_bound(problem, profile).seconds;
}

double keep_seconds(const Program& program, const Options& options, const Overhead& overhead,
                    const plan::Profile& profile) {
  Options keep = options;
  keep.policy = "keep";
  const MemoryPlan plan = plan_memory(program, keep, kUnlimitedBytes, overhead);
  return plan::simulate(planned_problem(program, plan), *plan.training, with_moves(program, plan, profile))
      .step_seconds;
}

plan::Profile estimated_profile(const Program& program, const Options& options) {
  plan::MachineEstimate machine;
  if (!options.tier_bandwidth.empty()) {
    const auto bandwidth = static_cast<double>(parse_bandwidth(options.tier_bandwidth, "--tier-bandwidth"));
    machine.tier.read_bandwidth = machine.tier.write_bandwidth = bandwidth;
    machine.tier.read_bandwidth_together = machine.tier.write_bandwidth_together = bandwidth;
    machine.tier.serves_waiting_first = false;
  }
  const plan::Problem problem =
      plan::make_problem(program.training->graph, program.training->scratch_bytes, plan::grain_rule(0, 4096));
  return plan::estimate_profile(problem, machine);
}

std::string memory_plan_to_json(const Program& program, const MemoryPlan& plan, const std::string& model,
                                std::int64_t batch) {
  Json json;
  json["version"] = 1;
  json["model"] = model;
  json["batch"] = batch;
  json["pool"] = plan.packed ? "packed" : "virtual";
  json["budget_bytes"] = plan.budget_bytes;
  json["overhead"] = plan.overhead;
  json["rule_bytes"] = plan.rule_bytes;
  json["capacity_bytes"] = plan.capacity_bytes;
  json["planned_peak_bytes"] = plan.planned_peak_bytes;
  json["in_memory_bytes"] = plan.in_memory_bytes;
  json["predicted_step_seconds"] = plan.predicted_step_seconds;
  json["training"] = Json::parse(plan::plan_to_json(planned_problem(program, plan), *plan.training));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

MemoryPlan memory_plan_from_json(const Program& program, const Options& options, std::int64_t budget_bytes,
                                 const Overhead& overhead, const std::string& text,
                                 const std::string& source) {
  MemoryPlan result;
  result.overhead = overhead;
  std::vector<const lower::Executable*> steps{program.training.get()};
  if (program.evaluation) steps.push_back(program.evaluation.get());
  result.map = run::map_slots(steps);
  try {
    if (nests_deeper_than(text, 16)) throw UserError("it is nested too deeply");
    const Json json = Json::parse(text);
    if (json.at("version").get<int>() != 1) throw UserError("it is of another version");
    const std::string pool = json.at("pool").get<std::string>();
    if (pool != "virtual" && pool != "packed") throw UserError("its pool is not known");
    if (options.pool != "auto" && options.pool != pool) throw UserError("it is for --pool " + pool);
    result.packed = pool == "packed";
    result.budget_bytes = budget_bytes > 0 ? budget_bytes : json.at("budget_bytes").get<std::int64_t>();
    result.rule_bytes = json.at("rule_bytes").get<std::int64_t>();
    result.capacity_bytes = json.at("capacity_bytes").get<std::int64_t>();
    result.planned_peak_bytes = json.at("planned_peak_bytes").get<std::int64_t>();
    result.in_memory_bytes = json.at("in_memory_bytes").get<std::int64_t>();
    result.predicted_step_seconds = json.at("predicted_step_seconds").get<double>();
    if (result.capacity_bytes < result.planned_peak_bytes ||
        (!result.packed && result.rule_bytes < result.capacity_bytes)) {
      throw UserError("its sizes contradict each other");
    }
    const plan::Problem problem = planned_problem(program, result);
    plan::Plan plan = plan::plan_from_json(problem, json.at("training").dump(), "training");
    const plan::CheckResult check = plan::check(problem, plan);
    if (!check.ok) throw UserError("the plan does not hold: " + check.message);
    plan.summary = check.summary;
    result.policy = plan.policy;
    if (program.evaluation)
      result.evaluation = plan_evaluation(program, result, plan::settled(plan.boundary));
    result.training = std::move(plan);
    if (result.packed) pack_memory(program, result);
  } catch (const plan::BudgetError& error) {
    throw UserError(fmt::format("{}: evaluation does not fit the plan's pool: {}", source, error.what()));
  } catch (const std::exception& error) {
    throw UserError(fmt::format(
        "{}: not a plan that can be used here: {}; make one by `penstock plan --out` with the same model and "
        "options",
        source, error.what()));
  }
  std::int64_t& margin_bytes = result.overhead["margin"];
  const std::int64_t missing = result.capacity_bytes + result.overhead_bytes() - result.budget_bytes;
  if (missing > kMarginSlackBytes) {
    throw UserError(
        fmt::format("{}: the plan's pool of {} and {} for the process exceed {}; name --memory {}MiB or "
                    "more, or plan again",
                    source, format_bytes(result.capacity_bytes), format_bytes(result.overhead_bytes()),
                    format_bytes(result.budget_bytes), (result.budget_bytes + missing) / kMiB + 1));
  }
  margin_bytes -= std::max<std::int64_t>(0, missing);
  return result;
}

}  // namespace penstock::training
