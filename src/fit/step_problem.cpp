#include "fit/step_problem.h"

#include <algorithm>

namespace penstock::fit {

namespace {

plan::Problem bare_problem(const lower::Executable& step, const StorageMap& map, const plan::PoolRule& rule,
                           const std::optional<plan::Boundary>& boundary) {
  if (!step.variant_scratch_bytes.empty()) {
    return plan::make_problem(step.graph, plan::VariantScratch(step.variant_scratch_bytes), rule,
                              map.storage_bytes(), boundary);
  }
  return plan::make_problem(step.graph, step.scratch_bytes, rule, map.storage_bytes(), boundary);
}

/// Whether whatever kernel runs the op may write the output over the input.
bool can_overwrite(const lower::Executable& step, std::size_t op, std::size_t output, std::size_t input) {
  if (step.variants.empty()) return step.kernels[op]->can_overwrite(output, input);
  return std::all_of(step.variants[op].begin(), step.variants[op].end(),
                     [&](const auto& kernel) { return kernel->can_overwrite(output, input); });
}

/// Where an op may write over what it reads. A pool that cannot move memory has no plans that do, but the
/// bound is to hold for all plans, so it must know. Lowering has let them share where nobody reads that
/// later; here it is for the plan to say whether it is made anew.
void find_overwrites(const lower::Executable& step, plan::Problem& problem) {
  const auto may_share = [&](const ir::Tensor& tensor) {
    return !problem.storage(tensor.storage).carried && tensor.role != ir::Role::input &&
           problem.storage(tensor.storage).footprint_bytes > 0;
  };
  RowsBuilder<plan::Overwrite> overwrites(step.graph.ops.size());
  for (std::size_t i = 0; i < step.graph.ops.size(); ++i) {
    const ir::Op& op = step.graph.ops[i];
    for (std::size_t o = 0; o < op.outputs.size(); ++o) {
      const ir::Tensor& output = step.graph.tensor(op.outputs[o]);
      if (!may_share(output)) continue;
      for (std::size_t k = 0; k < op.inputs.size(); ++k) {
        const ir::Tensor& input = step.graph.tensor(op.inputs[k]);
        const bool same_size =
            input.size_bytes() == output.size_bytes() &&
            problem.storage(input.storage).footprint_bytes == problem.storage(output.storage).footprint_bytes;
        if (!may_share(input) || !same_size || !can_overwrite(step, i, o, k)) continue;
        const std::span<const plan::Use> uses = problem.ops[i].uses;
        const bool in_use = std::any_of(uses.begin(), uses.end(), [&](const plan::Use& use) {
          return (use.storage == output.storage && use.reads) || (use.storage == input.storage && use.writes);
        });
        if (!in_use) overwrites.push_back({input.storage, output.storage});
      }
    }
    overwrites.end_row();
  }
  problem.ops.set_overwrites(overwrites.finish());
}

}  // namespace

plan::Problem step_problem(const lower::Executable& step, const StorageMap& map, const plan::PoolRule& rule,
                           const std::optional<plan::Boundary>& boundary) {
  plan::Problem problem = bare_problem(step, map, rule, boundary);
  find_overwrites(step, problem);
  return problem;
}

}  // namespace penstock::fit
