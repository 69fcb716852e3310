#pragma once

#include "ir/graph.h"
#include "kernels/kernel.h"
#include "lower/lower.h"

namespace penstock::testing {

/// The graph as it is, with a kernel of the backend for each op and every tensor in plain order: what
/// lowering is compared with. The backend must be one that takes plain layouts everywhere (the reference).
lower::Executable plain_executable(const ir::Graph& graph, kernels::Backend& backend);

}  // namespace penstock::testing
