#include "ir/ops/rules.h"

namespace penstock::ir::rules {
namespace {

Shapes softmax_shape(const Attrs& attrs, const Shapes& in) {
  checked_axis(in[0], attrs.get<AxisAttrs>().axis);
  return {in[0]};
}

}  // namespace

std::vector<OpFacts> pointwise_ops() {
  using enum OpKind;
  return {
      row<ActivationAttrs>(activation, "activation", {1, 1}, {1, 1}).infers(same_as_input),
      row<ActivationAttrs>(activation_backward, "activation_backward", {2, 2}, {1, 1}).checks(check_all_same),
      row<DropoutAttrs>(dropout, "dropout", {1, 1}, {1, 1}).infers(same_as_input),
      row<DropoutAttrs>(dropout_backward, "dropout_backward", {1, 1}, {1, 1}).checks(check_all_same),
      row<NoAttrs>(add, "add", {2, 2}, {1, 1}).infers(same_as_inputs).is(&OpFacts::dear),
      row<NoAttrs>(multiply, "multiply", {2, 2}, {1, 1}).infers(same_as_inputs),
      row<AxisAttrs>(softmax, "softmax", {1, 1}, {1, 1}).infers(softmax_shape),
      row<AxisAttrs>(softmax_backward, "softmax_backward", {2, 2}, {1, 1}).checks(check_all_same),
  };
}

}  // namespace penstock::ir::rules
