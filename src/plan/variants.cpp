#include "plan/variants.h"

#include <algorithm>

#include "base/long_vector.h"
#include "plan/walker.h"

namespace penstock::plan {
namespace {

/// By op: the most that is in use whenever it runs, its scratch not counted.
struct UsedBytes : PlanVisitor {
  explicit UsedBytes(const Walker& followed, std::size_t ops) : walker(followed), most(ops, 0) {}

  void begins(const OpRun& run) {
    std::int64_t& of_op = most[static_cast<std::size_t>(run.op)];
    of_op = std::max(of_op, walker.used_bytes() - run.scratch_bytes);
  }

  const Walker& walker;
  LongVector<std::int64_t> most;
};

}  // namespace

void pick_variants(const Problem& problem, const Profile& profile, Plan& plan) {
  Walker walker(problem, plan);
  UsedBytes used(walker, problem.ops.size());
  walker.begin(used);
  walker.step(used);
  for (Instruction& in : plan.instructions) {
    if (in.action != Action::run) continue;
    const std::span<const std::int64_t> scratch = problem.op(in.id).scratch_bytes;
    const std::span<const double> seconds = profile.op_seconds[static_cast<std::size_t>(in.id)];
    for (std::size_t v = 0; v < std::min(scratch.size(), seconds.size()); ++v) {
      const bool fits = used.most[static_cast<std::size_t>(in.id)] + scratch[v] <= problem.budget_bytes;
      if (fits && seconds[v] < profile.seconds(in.id, in.variant)) in.variant = static_cast<std::int32_t>(v);
    }
  }
}

}  // namespace penstock::plan
