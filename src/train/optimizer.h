#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace penstock::train {

enum class OptimizerKind : std::uint8_t { sgd, adam, adamw };

/// PyTorch's rules and defaults, but for the learning rate, which changes from step to step (StepContext).
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  float momentum = 0;      ///< sgd
  bool nesterov = false;   ///< sgd
  float weight_decay = 0;  ///< added to the gradient; adamw: taken off the parameter
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;  ///< adam, adamw
};

/// Throws UserError if an option is out of range.
void check(const OptimizerOptions& options);

/// Appends the update of `parameter` by its gradient to the step: an op of phase update that writes the
/// parameter's successor, and the state it needs: NAME.momentum (sgd with momentum), NAME.exp_avg and
/// NAME.exp_avg_sq (adam).
void append_update(ir::Graph& graph, ir::TensorId parameter, ir::TensorId gradient,
                   const OptimizerOptions& options);

}  // namespace penstock::train
