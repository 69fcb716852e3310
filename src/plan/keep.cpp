#include "plan/all_resident.h"
#include "plan/budget_error.h"
#include "plan/plan_builder.h"
#include "plan/policies.h"

namespace penstock::plan {
namespace {

PlanBuilder build_keep(const Step& step) {
  PlanBuilder builder = begin_with_state_resident(step.problem());
  for (Position p = 0; p < step.positions(); ++p) {
    const StepOp op = step.at(p);
    for (const Use& use : op.uses) {
      if (!builder.mapped(use.storage)) builder.acquire(use.storage);
    }
    builder.run(step.op(p));
    for (const Use& use : op.uses) {
      const StorageUses storage = step.storage(use.storage);
      if (!storage.carried && storage.accesses.back().position == p) builder.release(use.storage);
    }
  }
  end_with_state_resident(step.problem(), builder);
  return builder;
}

}  // namespace

std::int64_t keep_bytes(const Problem& problem) {
  return build_keep(Step(problem)).peak_bytes();
}

Plan plan_keep(const Step& step) {
  PlanBuilder builder = build_keep(step);
  const std::int64_t budget_bytes = step.problem().budget_bytes;
  if (builder.peak_bytes() > budget_bytes) throw BudgetError("keep", builder.peak_bytes(), budget_bytes);
  return builder.finish("keep");
}

Plan plan_keep(const Problem& problem) {
  return plan_keep(Step(problem));
}

}  // namespace penstock::plan
