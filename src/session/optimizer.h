#pragma once

#include "ir/graph.h"
#include "penstock/options.h"

namespace penstock::session {

/// The optimizer's own, or what is used where none is given: 0.1 for sgd, 0.001 for the others.
double base_learning_rate(const Optimizer& optimizer);

/// Throws UserError if a number is out of range.
void check(const Optimizer& optimizer);

/// Appends the update of `parameter` by its gradient to the step: an op of phase update that writes the
/// parameter's successor, and the state it needs: NAME.momentum (sgd with momentum), NAME.exp_avg and
/// NAME.exp_avg_sq (adam).
void append_update(ir::Graph& graph, ir::TensorId parameter, ir::TensorId gradient,
                   const Optimizer& optimizer);

}  // namespace penstock::session
