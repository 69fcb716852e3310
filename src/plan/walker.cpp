#include "plan/walker.h"

namespace penstock::plan {

void Walker::make_outputs(ir::OpId op) {
  const ir::Graph& graph = *problem_.graph;
  for (const ir::TensorId output : graph.op(op).outputs) at(graph.tensor(output).storage).in_memory = output;
}

void Walker::turn() {
  for (const Standing& standing : plan_.boundary) {
    Storage& storage = at(standing.storage);
    const ir::TensorId begin = problem_.storage(standing.storage).begin;
    if (storage.resident) storage.in_memory = begin;
    storage.on_tier = standing.on_tier ? begin : ir::kNone;
  }
}

}  // namespace penstock::plan
