#include <algorithm>

#include "lower/passes.h"

namespace penstock::lower {
namespace {

using ir::Op;
using ir::OpKind;
using ir::TensorId;

std::size_t at(TensorId id) {
  return static_cast<std::size_t>(id);
}

/// Ports that an op of `kind` still brings in or out keep their tensors.
void forget_unused(const ir::Graph& graph, OpKind kind, std::vector<ir::Port>& ports) {
  std::vector<bool> used(ports.size(), false);
  for (const Op& op : graph.ops) {
    if (op.kind == kind) used[at(op.attrs_as<ir::PortAttrs>().port)] = true;
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (!used[i]) ports[i].tensor = ir::kNone;
  }
}

}  // namespace

ir::Graph prune(ir::Graph graph) {
  std::vector<bool> needed(graph.tensors.size(), false);
  if (graph.loss != ir::kNone) needed[at(graph.loss)] = true;
  for (const ir::Carried& state : graph.carried) needed[at(state.end)] = true;
  LongVector<Op> kept;
  for (std::size_t i = graph.ops.size(); i-- > 0;) {
    Op& op = graph.ops[i];
    const bool is_needed =
        op.kind == OpKind::output ||
        std::any_of(op.outputs.begin(), op.outputs.end(), [&](TensorId id) { return needed[at(id)]; });
    if (!is_needed) continue;
    for (const TensorId id : op.inputs) needed[at(id)] = true;
    kept.push_back(std::move(op));
  }
  std::reverse(kept.begin(), kept.end());
  graph.ops = std::move(kept);
  forget_unused(graph, OpKind::input, graph.inputs);
  forget_unused(graph, OpKind::output, graph.outputs);
  return compact(std::move(graph));
}

}  // namespace penstock::lower
