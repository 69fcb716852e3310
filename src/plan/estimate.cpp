#include "plan/estimate.h"

#include <algorithm>

#include "base/long_vector.h"
#include "ir/op_table.h"

namespace penstock::plan {

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
        std::max(ir::op_flops(graph, op) / machine.flops_per_second, bytes / machine.bytes_per_second);
    profile.op_seconds.push_back(LongVector<double>(problem.ops[i].scratch_bytes.size(), seconds));
  }
  return profile;
}

}  // namespace penstock::plan
