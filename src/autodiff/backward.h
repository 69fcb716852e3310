#pragma once

#include <functional>
#include <span>

#include "ir/graph.h"

namespace penstock::autodiff {

/// Called once for each parameter as soon as its gradient is complete and nothing reads the parameter any
/// more, so that the update appended there lets the gradient die early.
using OnGradient = std::function<void(ir::Graph& graph, ir::TensorId parameter, ir::TensorId gradient)>;

/// A tensor of the forward graph whose gradient is already there.
struct Seed {
  ir::TensorId tensor = ir::kNone;
  ir::TensorId gradient = ir::kNone;
};

/// Appends the backward ops of `loss` (any tensor of one element) to a forward graph, last op first.
/// Gradients of a tensor with several uses are summed in a fixed order. Nothing is computed that no parameter
/// needs (the images' gradient, say).
void append_backward(ir::Graph& graph, ir::TensorId loss, const OnGradient& on_gradient);

/// The same from given gradients on instead of from a loss.
void append_backward(ir::Graph& graph, std::span<const Seed> seeds, const OnGradient& on_gradient);

}  // namespace penstock::autodiff
