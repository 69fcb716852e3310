#include <unordered_map>

#include "lower/lower.h"

namespace penstock::lower {
namespace {

using ir::Op;
using ir::OpKind;
using ir::TensorId;

/// Which op makes each activation that is cheaper to make again than to hold: a batch norm whose ReLU is
/// fused and whose inputs its own backward needs anyway. Where something is added, that would have to be held
/// as well.
std::unordered_map<TensorId, Op> cheap_activations(const ir::Graph& graph) {
  std::unordered_map<TensorId, Op> found;
  for (const Op& op : graph.ops) {
    if (op.kind != OpKind::batch_norm || op.phase != ir::Phase::forward) continue;
    const auto& attrs = op.attrs_as<ir::NormAttrs>();
    if (attrs.relu && attrs.mask && !attrs.add) found.emplace(op.outputs[0], op);
  }
  return found;
}

}  // namespace

ir::Graph repeat_norms(ir::Graph graph) {
  const std::unordered_map<TensorId, Op> cheap = cheap_activations(graph);
  std::unordered_map<TensorId, TensorId> repeated;
  std::vector<Op> ops;
  std::swap(ops, graph.ops);
  for (Op& op : ops) {
    if (op.phase == ir::Phase::backward) {
      for (TensorId& input : op.inputs) {
        const auto norm = cheap.find(input);
        if (norm == cheap.end()) continue;
        const auto [again, is_first] = repeated.try_emplace(input, ir::kNone);
        if (is_first) {
          const ir::Tensor& first = graph.tensor(input);
          again->second = graph.add_tensor(first.name + ".again", first.dtype, first.shape, first.role);
          auto attrs = norm->second.attrs_as<ir::NormAttrs>();
          attrs.mask = false;
          graph.add_op({OpKind::batch_norm,
                        ir::Phase::backward,
                        norm->second.name + ".again",
                        norm->second.inputs,
                        {again->second},
                        attrs});
        }
        input = again->second;
      }
    }
    graph.add_op(std::move(op));
  }
  return graph;
}

}  // namespace penstock::lower
