#pragma once

#include "kernels/kernel.h"

namespace penstock::kernels::native {

/// Ops between ranks, and the slices they work on. They take every layout as it is: what counts is the
/// memory.
bool is_exchange(ir::OpKind kind);

/// The kernel of such an op, whose tensors have their layouts already.
Selection select_exchange(const ir::Graph& graph, const ir::Op& op);

}  // namespace penstock::kernels::native
