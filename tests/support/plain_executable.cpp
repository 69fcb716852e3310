#include "support/plain_executable.h"

#include "base/error.h"

namespace penstock::testing {

lower::Executable plain_executable(const ir::Graph& graph, kernels::Backend& backend) {
  lower::Executable executable;
  executable.graph = graph;
  for (const ir::Op& op : graph.ops) {
    std::vector<const ir::Layout*> given;
    for (const ir::TensorId id : op.inputs) given.push_back(&executable.graph.tensor(id).layout);
    const kernels::Selection selection = backend.select(executable.graph, op, given);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      require(selection.inputs[i] == *given[i], "plain_executable: the kernel asks for a reorder");
    }
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      executable.graph.tensor(op.outputs[i]).layout = selection.outputs[i];
    }
    executable.kernels.push_back(selection.kernel);
    executable.scratch_bytes.push_back(selection.kernel->scratch_bytes());
  }
  return executable;
}

}  // namespace penstock::testing
