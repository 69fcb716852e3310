#include "plan/all_resident.h"

namespace penstock::plan {

PlanBuilder begin_with_state_resident(const Problem& problem) {
  PlanBuilder builder(problem, problem.boundary ? *problem.boundary : boundary_in_memory(problem));
  if (problem.boundary) {
    for (const Place& place : *problem.boundary) {
      if (!place.resident) builder.swap_in(place.storage);
    }
  }
  return builder;
}

void end_with_state_resident(const Problem& problem, PlanBuilder& builder) {
  if (!problem.boundary) return;
  for (const Place& place : *problem.boundary) {
    const ir::StorageId s = place.storage;
    if (builder.pending(s) != Transfer::none && builder.pending(s) != place.pending) builder.wait(s);
    if (place.on_tier && !builder.clean(s)) {
      builder.swap_out(s);
      if (place.pending != Transfer::write) builder.wait(s);
    }
    if (!place.resident) builder.release(s);
  }
}

}  // namespace penstock::plan
