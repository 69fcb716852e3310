#include "plan/all_resident.h"

namespace penstock::plan {

PlanBuilder begin_with_state_resident(const Problem& problem) {
  PlanBuilder builder(problem, problem.boundary ? *problem.boundary : boundary_in_memory(problem));
  if (problem.boundary) {
    for (const Standing& standing : *problem.boundary) {
      if (!standing.resident) builder.swap_in(standing.storage);
    }
  }
  return builder;
}

void end_with_state_resident(const Problem& problem, PlanBuilder& builder) {
  if (!problem.boundary) return;
  for (const Standing& standing : *problem.boundary) {
    const ir::StorageId s = standing.storage;
    if (builder.pending(s) != Transfer::none && builder.pending(s) != standing.pending) builder.wait(s);
    if (standing.on_tier && !builder.clean(s)) {
      builder.swap_out(s);
      if (standing.pending != Transfer::write) builder.wait(s);
    }
    if (!standing.resident) builder.release(s);
  }
}

}  // namespace penstock::plan
