#include "lower/lower.h"

#include "lower/passes.h"

namespace penstock::lower {

Executable lower(const ir::Graph& graph, kernels::Backend& backend, const LowerOptions& options,
                 const Executable* fixed_state) {
  Executable executable = assign_layouts(graph, backend, fixed_state);
  if (options.exchange.ranks > 1) exchange_gradients(executable, backend, options.exchange);
  if (options.in_place) share_in_place(executable);
  executable.graph = compact(std::move(executable.graph));
  ir::verify(executable.graph);
  return executable;
}

}  // namespace penstock::lower
