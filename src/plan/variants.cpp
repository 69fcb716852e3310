#include "plan/variants.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace penstock::plan {
namespace {

/// By op: what is free whenever it runs, its scratch not counted.
std::vector<std::int64_t> free_bytes(const Problem& problem, const Plan& plan) {
  std::vector<std::int64_t> least(problem.ops.size(), std::numeric_limits<std::int64_t>::max());
  std::int64_t free = problem.budget_bytes;
  for (const Standing& standing : plan.boundary) {
    if (standing.resident) free -= problem.storage(standing.storage).footprint_bytes;
  }
  for (const Instruction& in : plan.instructions) {
    if (in.action == Action::run) {
      std::int64_t& of_op = least[static_cast<std::size_t>(in.id)];
      of_op = std::min(of_op, free);
    } else if (in.action == Action::acquire || in.action == Action::swap_in) {
      free -= problem.storage(in.id).footprint_bytes;
    } else if (in.action == Action::release) {
      free += problem.storage(in.id).footprint_bytes;
    }
  }
  return least;
}

}  // namespace

void pick_variants(const Problem& problem, const Profile& profile, Plan& plan) {
  const std::vector<std::int64_t> free = free_bytes(problem, plan);
  for (Instruction& in : plan.instructions) {
    if (in.action != Action::run) continue;
    const std::vector<std::int64_t>& scratch = problem.op(in.id).scratch_bytes;
    const std::vector<double>& seconds = profile.op_seconds[static_cast<std::size_t>(in.id)];
    for (std::size_t v = 0; v < std::min(scratch.size(), seconds.size()); ++v) {
      const bool fits = scratch[v] <= free[static_cast<std::size_t>(in.id)];
      if (fits && seconds[v] < profile.seconds(in.id, in.variant)) in.variant = static_cast<std::int32_t>(v);
    }
  }
}

}  // namespace penstock::plan
