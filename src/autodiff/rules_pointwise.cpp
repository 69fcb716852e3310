#include "autodiff/rules.h"
#include "base/error.h"

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

void cross_entropy_rule(RuleContext& context) {
  require(context.gradient(0) == ir::kNone && context.gradient(1) == ir::kNone,
          "a cross-entropy must be the loss itself: nothing may be computed from it");
  context.emit(OpKind::cross_entropy_backward, "backward", {context.out(1), context.in(1)}, ir::NoAttrs{},
               {0});
}

}  // namespace penstock::autodiff
