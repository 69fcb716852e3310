#include <algorithm>
#include <map>

#include "lower/passes.h"

namespace penstock::lower {
namespace {

using ir::kNone;
using ir::TensorId;

/// Calls f(id&) for every mention of a tensor.
template <typename F>
void for_each_mention(ir::Graph& graph, const F& f) {
  for (ir::Op& op : graph.ops) {
    for (TensorId& id : op.inputs) f(id);
    for (TensorId& id : op.outputs) f(id);
  }
  for (ir::Carried& state : graph.carried) {
    f(state.begin);
    f(state.end);
  }
  for (std::vector<ir::Port>* ports : {&graph.inputs, &graph.outputs}) {
    for (ir::Port& port : *ports) {
      if (port.tensor != kNone) f(port.tensor);
    }
  }
  if (graph.loss != kNone) f(graph.loss);
}

}  // namespace

ir::Graph compact(ir::Graph graph) {
  std::vector<bool> named(graph.tensors.size(), false);
  for_each_mention(graph, [&](const TensorId& id) { named[static_cast<std::size_t>(id)] = true; });
  std::vector<TensorId> place(graph.tensors.size(), kNone);
  LongVector<ir::Tensor> kept;
  kept.reserve(static_cast<std::size_t>(std::count(named.begin(), named.end(), true)));
  std::map<ir::StorageId, ir::StorageId> storages;
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (!named[i]) continue;
    place[i] = static_cast<TensorId>(kept.size());
    kept.push_back(std::move(graph.tensors[i]));
    const auto next = static_cast<ir::StorageId>(storages.size());
    kept.back().storage = storages.emplace(kept.back().storage, next).first->second;
  }
  graph.tensors = std::move(kept);
  graph.storages = static_cast<ir::StorageId>(storages.size());
  graph.ops.shrink_to_fit();
  for_each_mention(graph, [&](TensorId& id) { id = place[static_cast<std::size_t>(id)]; });
  for (ir::Tensor& tensor : graph.tensors) tensor.producer = kNone;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    for (const TensorId id : graph.ops[i].outputs) graph.tensor(id).producer = static_cast<ir::OpId>(i);
  }
  return graph;
}

ir::Graph without_ops(ir::Graph graph, const std::vector<bool>& gone) {
  LongVector<ir::Op> kept;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    if (!gone[i]) kept.push_back(std::move(graph.ops[i]));
  }
  graph.ops = std::move(kept);
  return compact(std::move(graph));
}

}  // namespace penstock::lower
