#pragma once

#include <map>
#include <vector>

#include "autodiff/backward.h"
#include "ir/graph.h"
#include "kernels/op_cases.h"

namespace penstock::testing {

/// A graph of one case: its op and, if asked for, the backward ops that its gradient rule makes of it.
struct CaseGraph {
  ir::Graph graph;
  std::map<ir::TensorId, std::vector<float>>
      values;                         ///< of the tensors that enter (labels as floats), plain order
  std::vector<ir::TensorId> weights;  ///< of these, those whose layout the kernel may choose
  std::vector<ir::TensorId> inputs;   ///< of these, those of the case, in its order
  std::vector<autodiff::Seed> seeds;  ///< outputs and their given gradients
  std::map<ir::TensorId, ir::TensorId> gradients;  ///< of the differentiable inputs
};

CaseGraph make_case_graph(const OpCase& op_case, bool backward);

}  // namespace penstock::testing
