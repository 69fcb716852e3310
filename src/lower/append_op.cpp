#include <utility>
#include <vector>

#include "lower/passes.h"

namespace penstock::lower {

void append_op(Executable& executable, ir::Op op, std::shared_ptr<const kernels::Kernel> kernel) {
  executable.graph.add_op(std::move(op));
  executable.scratch_bytes.push_back(kernel->scratch_bytes());
  executable.kernels.push_back(std::move(kernel));
}

void append_op(Executable& executable, kernels::Backend& backend, ir::Op op) {
  std::vector<const ir::Layout*> given;
  given.reserve(op.inputs.size());
  for (const ir::TensorId id : op.inputs) given.push_back(&executable.graph.tensor(id).layout);
  std::shared_ptr<const kernels::Kernel> kernel = backend.select(executable.graph, op, given).kernel;
  append_op(executable, std::move(op), std::move(kernel));
}

}  // namespace penstock::lower
