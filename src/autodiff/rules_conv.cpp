#include <utility>

#include "autodiff/rules.h"

namespace penstock::autodiff {

using ir::OpKind;
using ir::TensorId;

namespace {

/// The gradient before a fused ReLU.
TensorId masked_gradient(RuleContext& c, bool relu) {
  if (!relu) return c.dy();
  return c.emit_intermediate(OpKind::activation_backward, "backward_relu", {c.out(0), c.dy()},
                             ir::ActivationAttrs{ir::Activation::relu}, c.out(0));
}

/// x, w, (b) -> y. The weights' gradient comes first: x is then free before dx needs room.
void weighted_rule(RuleContext& c, OpKind backward_data, OpKind backward_weights, const ir::Attrs& attrs,
                   bool relu) {
  const TensorId dy = masked_gradient(c, relu);
  const bool bias = c.op().inputs.size() > 2 && c.needs(2);
  if (c.needs(1) || bias) {
    const std::vector<std::size_t> of_inputs =
        bias ? std::vector<std::size_t>{1, 2} : std::vector<std::size_t>{1};
    c.emit(backward_weights, "backward_weights", {c.in(0), dy}, attrs, of_inputs);
  }
  if (c.needs(0)) c.emit(backward_data, "backward_data", {dy, c.in(1)}, attrs, {0});
}

ir::ConvAttrs without_relu(ir::ConvAttrs attrs) {
  attrs.relu = false;
  return attrs;
}

}  // namespace

void conv_rule(RuleContext& context) {
  const auto& attrs = context.op().attrs_as<ir::ConvAttrs>();
  weighted_rule(context, OpKind::conv_backward_data, OpKind::conv_backward_weights, without_relu(attrs),
                attrs.relu);
}

void conv_transpose_rule(RuleContext& context) {
  const auto& attrs = context.op().attrs_as<ir::ConvAttrs>();
  weighted_rule(context, OpKind::conv_transpose_backward_data, OpKind::conv_transpose_backward_weights,
                without_relu(attrs), attrs.relu);
}

void linear_rule(RuleContext& context) {
  auto attrs = context.op().attrs_as<ir::LinearAttrs>();
  const bool relu = std::exchange(attrs.relu, false);
  weighted_rule(context, OpKind::linear_backward_data, OpKind::linear_backward_weights, attrs, relu);
}

void matmul_rule(RuleContext& context) {
  // With A and B as they stand in the product: dA = dy B^T, dB = A^T dy; a transposed input takes the
  // transposed product instead.
  const auto& attrs = context.op().attrs_as<ir::MatmulAttrs>();
  const TensorId a = context.in(0);
  const TensorId b = context.in(1);
  const TensorId dy = context.dy();
  if (context.needs(0)) {
    if (attrs.transpose_a) {
      context.emit(OpKind::matmul, "backward_a", {b, dy},
                   ir::MatmulAttrs{attrs.transpose_b, true, attrs.scale}, {0});
    } else {
      context.emit(OpKind::matmul, "backward_a", {dy, b},
                   ir::MatmulAttrs{false, !attrs.transpose_b, attrs.scale}, {0});
    }
  }
  if (context.needs(1)) {
    if (attrs.transpose_b) {
      context.emit(OpKind::matmul, "backward_b", {dy, a},
                   ir::MatmulAttrs{true, attrs.transpose_a, attrs.scale}, {1});
    } else {
      context.emit(OpKind::matmul, "backward_b", {a, dy},
                   ir::MatmulAttrs{!attrs.transpose_a, false, attrs.scale}, {1});
    }
  }
}

void bias_rule(RuleContext& context) {
  if (context.needs(1)) context.emit(OpKind::bias_backward, "backward", {context.dy()}, ir::NoAttrs{}, {1});
  context.pass(0, context.dy());
}

}  // namespace penstock::autodiff
