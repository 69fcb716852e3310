#include <fmt/format.h>

#include "base/error.h"
#include "lower/passes.h"

namespace penstock::lower {
namespace {

/// The variance of one value says nothing, and its gradient is zero: nobody means that.
void check_statistics(const ir::Graph& graph, const ir::Op& op) {
  const ir::Shape& x = graph.tensor(op.inputs[0]).shape;
  if (x.elements() / x[1] > 1) return;
  const std::string name = op.name;
  const std::string layer = name.substr(0, name.rfind('.'));
  throw UserError(
      fmt::format("layer {} (batch norm) would get one value per channel ({}) and cannot normalize it; "
                  "use a batch of at least 2 or larger images",
                  layer, x.to_string()));
}

}  // namespace

ir::Graph for_training(ir::Graph network) {
  std::erase_if(network.ops, [&](const ir::Op& op) {
    return op.kind == ir::OpKind::output &&
           network.outputs[static_cast<std::size_t>(op.attrs_as<ir::PortAttrs>().port)].evaluation_only;
  });
  ir::Graph graph = prune(std::move(network));
  for (const ir::Op& op : graph.ops) {
    if (op.kind == ir::OpKind::batch_norm_statistics) check_statistics(graph, op);
  }
  return graph;
}

}  // namespace penstock::lower
