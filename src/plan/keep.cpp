#include "plan/all_resident.h"
#include "plan/budget_error.h"
#include "plan/plan_builder.h"
#include "plan/policies.h"

namespace penstock::plan {
namespace {

PlanBuilder build_keep(const Problem& problem) {
  PlanBuilder builder = begin_with_state_resident(problem);
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    const auto op = static_cast<ir::OpId>(i);
    for (const Use& use : problem.op(op).uses) {
      if (!builder.mapped(use.storage)) builder.acquire(use.storage);
    }
    builder.run(op);
    for (const Use& use : problem.op(op).uses) {
      const StorageInfo& storage = problem.storage(use.storage);
      if (!storage.carried && storage.accesses.back().position == op) builder.release(use.storage);
    }
  }
  end_with_state_resident(problem, builder);
  return builder;
}

}  // namespace

std::int64_t keep_bytes(const Problem& problem) {
  return build_keep(problem).peak_bytes();
}

Plan plan_keep(const Problem& problem) {
  PlanBuilder builder = build_keep(problem);
  if (builder.peak_bytes() > problem.budget_bytes) {
    throw BudgetError("keep", builder.peak_bytes(), problem.budget_bytes);
  }
  return builder.finish("keep");
}

}  // namespace penstock::plan
