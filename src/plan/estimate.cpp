#include "plan/estimate.h"

#include <algorithm>

namespace penstock::plan {
namespace {

double elements(const ir::Graph& graph, ir::TensorId t) {
  return static_cast<double>(graph.tensor(t).shape.elements());
}

/// Elements of the weights for each of their first extent: what one output value of a convolution sums up.
double depth(const ir::Graph& graph, ir::TensorId weights) {
  return elements(graph, weights) / static_cast<double>(graph.tensor(weights).shape[0]);
}

}  // namespace

double op_flops(const ir::Graph& graph, const ir::Op& op) {
  switch (op.kind) {
    case ir::OpKind::conv:
    case ir::OpKind::linear:
      return 2 * elements(graph, op.outputs[0]) * depth(graph, op.inputs[1]);
    case ir::OpKind::conv_backward_data:
    case ir::OpKind::linear_backward_data:
      return 2 * elements(graph, op.inputs[0]) * depth(graph, op.inputs[1]);
    case ir::OpKind::conv_backward_weights:
    case ir::OpKind::linear_backward_weights:
      return 2 * elements(graph, op.inputs[1]) * depth(graph, op.outputs[0]);
    case ir::OpKind::conv_transpose:
      return 2 * elements(graph, op.inputs[0]) * depth(graph, op.inputs[1]);
    case ir::OpKind::conv_transpose_backward_data:
      return 2 * elements(graph, op.outputs[0]) * depth(graph, op.inputs[1]);
    case ir::OpKind::conv_transpose_backward_weights:
      return 2 * elements(graph, op.inputs[0]) * depth(graph, op.outputs[0]);
    case ir::OpKind::matmul: {
      const ir::Shape& a = graph.tensor(op.inputs[0]).shape;
      const bool transposed = op.attrs_as<ir::MatmulAttrs>().transpose_a;
      return 2 * elements(graph, op.outputs[0]) * static_cast<double>(a[a.rank() - (transposed ? 2 : 1)]);
    }
    default:
      return 0;
  }
}

Profile estimate_profile(const Problem& problem, const MachineEstimate& machine) {
  const ir::Graph& graph = *problem.graph;
  Profile profile;
  profile.tier = machine.tier;
  profile.host = machine.host;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const ir::Op& op = graph.ops[i];
    double bytes = 0;
    for (const ir::TensorId t : op.inputs) bytes += static_cast<double>(graph.tensor(t).size_bytes());
    for (const ir::TensorId t : op.outputs) bytes += static_cast<double>(graph.tensor(t).size_bytes());
    const double seconds =
        std::max(op_flops(graph, op) / machine.flops_per_second, bytes / machine.bytes_per_second);
    profile.op_seconds.emplace_back(problem.ops[i].scratch_bytes.size(), seconds);
  }
  return profile;
}

}  // namespace penstock::plan
