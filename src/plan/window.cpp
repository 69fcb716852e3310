#include "plan/budget_error.h"
#include "plan/policies.h"
#include "plan/window_walk.h"

namespace penstock::plan {
namespace {

/// Whether a step that ends at `end` can be followed by one that begins at `begin`.
bool follows(const Boundary& end, const Boundary& begin) {
  for (std::size_t i = 0; i < end.size(); ++i) {
    if (end[i].resident != begin[i].resident || (begin[i].on_tier && !end[i].on_tier)) return false;
    if (end[i].pending != Transfer::none && end[i].pending != begin[i].pending) return false;
  }
  return true;
}

}  // namespace

Plan plan_window(const Problem& problem, const WindowOptions& options) {
  const std::int64_t needed_bytes = smallest_bytes(problem);
  if (needed_bytes > problem.budget_bytes) throw BudgetError("window", needed_bytes, problem.budget_bytes);
  const std::int64_t window_bytes =
      options.window_bytes > 0 ? options.window_bytes : problem.budget_bytes + problem.budget_bytes / 2;
  if (problem.boundary) {
    return WindowWalk(problem, window_bytes, *problem.boundary, &*problem.boundary)
        .walk(true)
        .finish("window");
  }
  // The first walk finds out what is in memory when a step ends; the second one starts from there and ends
  // there.
  const Boundary nowhere = boundary_on_tier(problem);
  Boundary boundary = WindowWalk(problem, window_bytes, nowhere, nullptr).walk(false).boundary();
  for (int attempt = 0; attempt < 4; ++attempt) {
    PlanBuilder builder = WindowWalk(problem, window_bytes, boundary, &boundary).walk(false);
    const Boundary end = builder.boundary();
    if (follows(end, boundary)) return builder.finish("window");
    boundary = end;
  }
  return WindowWalk(problem, window_bytes, nowhere, &nowhere).walk(true).finish("window");
}

}  // namespace penstock::plan
