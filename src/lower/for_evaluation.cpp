#include <unordered_map>

#include "lower/passes.h"

namespace penstock::lower {
namespace {

using ir::Op;
using ir::OpKind;
using ir::TensorId;

/// Which tensor stands for another in an evaluation.
using Instead = std::unordered_map<TensorId, TensorId>;

/// What a dropout makes is what it reads; the statistics of a batch are the running ones that they update.
Instead find_substitutes(const ir::Graph& graph) {
  Instead instead;
  const auto resolved = [&](TensorId id) {
    const auto earlier = instead.find(id);
    return earlier == instead.end() ? id : earlier->second;
  };
  for (const Op& op : graph.ops) {
    if (op.kind == OpKind::dropout) instead[op.outputs[0]] = resolved(op.inputs[0]);
    if (op.kind != OpKind::statistics_update) continue;
    for (const std::size_t k : {0U, 1U}) {
      const TensorId running = resolved(op.inputs[k]);
      instead[op.inputs[k + 2]] = running;
      instead[op.outputs[k]] = running;
    }
  }
  return instead;
}

}  // namespace

ir::Graph for_evaluation(ir::Graph network) {
  const Instead instead = find_substitutes(network);
  const auto substitute = [&](TensorId& id) {
    const auto found = instead.find(id);
    if (found != instead.end()) id = found->second;
  };
  for (Op& op : network.ops) {
    for (TensorId& id : op.inputs) substitute(id);
    if (op.kind == OpKind::attention) {
      auto attrs = op.attrs_as<ir::AttentionAttrs>();
      attrs.dropout = 0;
      op.attrs = attrs;
    }
    // Only the gradient reads which element was the largest.
    if (op.kind == OpKind::max_pool) op.outputs.shorten(1);
    if (op.kind == OpKind::attention) {
      auto attrs = op.attrs_as<ir::AttentionAttrs>();
      attrs.dropout = 0;
      op.attrs = attrs;
    }
  }
  for (ir::Port& port : network.outputs) substitute(port.tensor);
  substitute(network.loss);
  for (ir::Carried& state : network.carried) state.end = state.begin;
  return prune(std::move(network));
}

}  // namespace penstock::lower
