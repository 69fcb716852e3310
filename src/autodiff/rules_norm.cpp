#include "autodiff/rules.h"
#include "base/error.h"

namespace penstock::autodiff {

using ir::OpKind;
using ir::TensorId;

void batch_norm_rule(RuleContext& context) {
  const auto& attrs = context.op().attrs_as<ir::NormAttrs>();
  require(context.is_made_by(3, OpKind::batch_norm_statistics),
          "batch norm with running statistics has no gradient rule");
  ir::NormAttrs backward{attrs.epsilon};
  TensorId dy = context.dy();
  if (attrs.silu) {
    backward.silu = true;
    context.emit(OpKind::batch_norm_silu_backward, "backward",
                 {context.in(0), dy, context.in(1), context.in(2), context.in(3), context.in(4)}, backward,
                 {0, 1, 2});
    return;
  }
  std::vector<TensorId> inputs{context.in(0), dy, context.in(1), context.in(3), context.in(4)};
  std::vector<std::size_t> of_inputs{0, 1, 2};
  const bool residual = attrs.add && context.needs(5);
  if (attrs.relu && attrs.mask) {
    backward.relu = backward.mask = true;
    backward.add = residual;
    inputs.push_back(context.out(1));
    if (residual) of_inputs.push_back(5);
  } else {
    if (attrs.relu) {
      require(attrs.ceiling == 0, "the gradient of a ReLU with a ceiling needs its mask");
      dy = context.emit_intermediate(OpKind::activation_backward, "backward_relu", {context.out(0), dy},
                                     ir::ActivationAttrs{ir::Activation::relu}, context.out(0));
      inputs[1] = dy;
    }
    if (residual) context.pass(5, dy);
  }
  context.emit(OpKind::batch_norm_backward, "backward", inputs, backward, of_inputs);
}

void lrn_rule(RuleContext& context) {
  context.emit(OpKind::lrn_backward, "backward", {context.in(0), context.dy()}, context.op().attrs, {0});
}

}  // namespace penstock::autodiff
