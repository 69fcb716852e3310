#include <malloc.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/text_file.h"
#include "penstock/penstock.h"
#include "report/explain.h"
#include "train/budget_planner.h"
#include "train/job.h"
#include "train/planned.h"

namespace penstock {
namespace training {
namespace {

/// The named one, or some from the smallest to what all in memory takes.
std::vector<std::int64_t> budgets_of(const PlanResult& result, const Job& job, const BudgetPlanner& planner) {
  if (!job.options.memory.empty()) return {planner.named_budget()};
  const std::int64_t most = round_up(result.in_memory_bytes + kUnsteadyBytes, kMiB);
  std::vector<std::int64_t> all;
  for (const double share : {0.0, 0.1, 0.25, 0.5, 0.75}) {
    const auto more = static_cast<std::int64_t>(static_cast<double>(most - result.smallest_bytes) * share);
    const std::int64_t budget = round_up(result.smallest_bytes + more, kMiB);
    if (budget < most && (all.empty() || budget > all.back())) all.push_back(budget);
  }
  all.push_back(most);
  return all;
}

void check(const PlanRequest& request, const Options& options) {
  if (!request.out_file.empty()) check_writable(request.out_file, "--out");
  if (!request.out_file.empty() && options.memory.empty())
    throw UserError("--out needs --memory: a plan is for one budget");
  if (request.largest_batch && options.memory.empty())
    throw UserError("--max-batch needs --memory: the budget that the batch is to fit");
}

void plan_budget(const Job& job, BudgetPlanner& planner, const plan::Profile& profile, std::int64_t budget,
                 const PlanRequest& request, PlanResult& result) {
  PlannedBudget row;
  row.budget_bytes = budget;
  try {
    const MemoryPlan plan = planner.plan_twice(budget);
    const plan::Profile planned = with_moves(job.program, plan, profile);
    row = describe_plan(job.program, plan, planned, result.in_memory_step_seconds, job.options.batch);
    if (!request.explain.empty() && !job.options.memory.empty())
      result.explanation =
          report::explain(planned_problem(job.program, plan), *plan.training, planned, request.explain);
    if (!request.out_file.empty())
      write_file(request.out_file,
                 memory_plan_to_json(job.program, plan, job.network.name, job.options.batch));
  } catch (const plan::BudgetError&) {
    row.feasible = false;
  }
  result.budgets.push_back(row);
}

}  // namespace
}  // namespace training

PlanResult plan_training(const Network& network, const Options& options, const PlanRequest& request) {
  using namespace training;
  check(request, options);
  Job job(network, options, Purpose::plan);
  job.set_up();
  job.build();
  BudgetPlanner planner(job);
  PlanResult result;
  result.model = network.name;
  result.batch = options.batch;
  result.threads = job.threads;
  const plan::Profile& profile = planner.found_profile();
  result.profile_source = planner.profile_source_name();
  malloc_trim(0);
  const Overhead beside = planner.overhead(options.batch);
  // Other budgets are looked at with what this process had before it looked at the first.
  planner.assume_program_bytes(beside.at("program"));
  result.in_memory_step_seconds = keep_seconds(job.program, options, beside, profile);
  result.in_memory_bytes = in_memory_bytes(job.program, options, beside);
  result.smallest_bytes = planner.smallest_budget(beside);
  for (const std::int64_t budget : budgets_of(result, job, planner)) {
    plan_budget(job, planner, profile, budget, request, result);
  }
  planner.assume_program_bytes(0);
  if (request.largest_batch) result.largest_batch = planner.largest_batch_from(planner.named_budget());
  return result;
}

}  // namespace penstock
