#include "lower/lower.h"

#include "lower/passes.h"

namespace penstock::lower {

Executable lower(const ir::Graph& graph, kernels::Backend& backend, const LowerOptions& options,
                 const Executable* fixed_state) {
  Executable executable = assign_layouts(graph, backend, fixed_state);
  if (options.exchange.ranks > 1) exchange_gradients(executable, backend, options.exchange);
  if (options.clip_norm > 0) clip_gradients(executable, backend, options);
  if (options.in_place) share_in_place(executable);
  executable.graph = compact(std::move(executable.graph));
  executable.kernels.shrink_to_fit();
  executable.scratch_bytes.shrink_to_fit();
  ir::verify(executable.graph);
  return executable;
}

void add_variants(Executable& executable, kernels::Backend& backend) {
  for (std::size_t i = 0; i < executable.graph.ops.size(); ++i) {
    auto variants = backend.variants(executable.graph, executable.graph.ops[i]);
    variants.front() = executable.kernels[i];
    LongVector<std::int64_t> scratch_bytes;
    for (const auto& kernel : variants) scratch_bytes.push_back(kernel->scratch_bytes());
    executable.variants.push_back(std::move(variants));
    executable.variant_scratch_bytes.push_back(std::move(scratch_bytes));
  }
}

}  // namespace penstock::lower
