#include "autodiff/rules.h"
#include "base/error.h"
#include "ir/functions.h"

namespace penstock::autodiff {

using ir::OpKind;

void activation_rule(RuleContext& context) {
  const bool from_input = context.op().attrs_as<ir::ActivationAttrs>().function == ir::Activation::gelu;
  context.emit(OpKind::activation_backward, "backward",
               {from_input ? context.in(0) : context.out(0), context.dy()}, context.op().attrs, {0});
}

void dropout_rule(RuleContext& context) {
  context.emit(OpKind::dropout_backward, "backward", {context.dy()}, context.op().attrs, {0});
}

void add_rule(RuleContext& context) {
  context.pass(0, context.dy());
  context.pass(1, context.dy());
}

void multiply_rule(RuleContext& context) {
  if (context.needs(0))
    context.emit(OpKind::multiply, "backward_a", {context.dy(), context.in(1)}, ir::NoAttrs{}, {0});
  if (context.needs(1))
    context.emit(OpKind::multiply, "backward_b", {context.dy(), context.in(0)}, ir::NoAttrs{}, {1});
}

void softmax_rule(RuleContext& context) {
  context.emit(OpKind::softmax_backward, "backward", {context.out(0), context.dy()}, context.op().attrs, {0});
}

void log_softmax_rule(RuleContext& context) {
  context.emit(OpKind::log_softmax_backward, "backward", {context.out(0), context.dy()}, context.op().attrs,
               {0});
}

void cross_entropy_rule(RuleContext& context) {
  require(context.gradient(1) == ir::kNone,
          "the probabilities of a cross-entropy are for its own gradient only");
  const ir::TensorId probabilities = context.out(1);
  if (context.gradient(0) == ir::kNone) {
    context.emit(OpKind::cross_entropy_backward, "backward", {probabilities, context.in(1)},
                 context.op().attrs, {0});
    return;
  }
  // A part of the loss: its gradient times that of the loss.
  const ir::TensorId own =
      context.emit_intermediate(OpKind::cross_entropy_backward, "backward", {probabilities, context.in(1)},
                                context.op().attrs, probabilities);
  context.emit(OpKind::pointwise, "backward_scale", {own, context.dy()},
               ir::PointwiseAttrs{ir::named_function("mul")}, {0});
}

}  // namespace penstock::autodiff
