#pragma once

#include <algorithm>

#include "ir/graph.h"

namespace penstock::testing {

inline int count(const ir::Graph& graph, ir::OpKind kind) {
  return static_cast<int>(
      std::count_if(graph.ops.begin(), graph.ops.end(), [&](const ir::Op& op) { return op.kind == kind; }));
}

}  // namespace penstock::testing
