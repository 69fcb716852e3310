#include <vector>

#include "base/error.h"
#include "plan/budget_error.h"
#include "plan/plan_builder.h"
#include "plan/policies.h"

namespace penstock::plan {
namespace {

PlanBuilder build_keep(const Problem& problem) {
  PlanBuilder builder(problem, problem.boundary ? *problem.boundary : boundary_in_memory(problem));
  for (const Place& place : problem.boundary ? *problem.boundary : Boundary{}) {
    if (!place.resident) builder.swap_in(place.storage);
  }
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    const auto op = static_cast<ir::OpId>(i);
    for (const Use& use : problem.op(op).uses) {
      if (!builder.mapped(use.storage)) builder.acquire(use.storage);
    }
    builder.run(op);
    for (const Use& use : problem.op(op).uses) {
      const StorageInfo& storage = problem.storage(use.storage);
      if (!storage.carried && storage.accesses.back().op == op) builder.release(use.storage);
    }
  }
  for (const Place& place : problem.boundary ? *problem.boundary : Boundary{}) {
    const ir::StorageId s = place.storage;
    if (builder.pending(s) != Transfer::none && builder.pending(s) != place.pending) builder.wait(s);
    if (place.on_tier && !builder.clean(s)) {
      builder.swap_out(s);
      if (place.pending != Transfer::write) builder.wait(s);
    }
    if (!place.resident) builder.release(s);
  }
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
