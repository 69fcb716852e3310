#include <algorithm>

#include "ir/ops/rules.h"

namespace penstock::ir::rules {
namespace {

Shapes softmax_shape(const Attrs& attrs, const Shapes& in) {
  checked_axis(in[0], attrs.get<AxisAttrs>().axis);
  return {in[0]};
}

/// All outputs have one shape.
Shapes pointwise_shapes(const Attrs& attrs, const Shapes& in) {
  const Program& program = attrs.get<PointwiseAttrs>().program;
  expect(in.size() == static_cast<std::size_t>(program.inputs), "{} inputs for a program of {}", in.size(),
         program.inputs);
  Shape y;
  for (const Shape& x : in) y = broadcast(y, x);
  return Shapes(program.outputs.size(), y);
}

void check_pointwise(const OpShapes& op) {
  const Shapes least = pointwise_shapes(op.attrs, op.in);
  expect(op.out.size() == least.size(), "{} outputs of a program that makes {}", op.out.size(), least.size());
  for (const Shape& y : op.out) {
    expect_same(op.out[0], y);
    expect_shape(broadcast(least[0], y), y, "what the inputs broadcast to");
  }
}

bool one_shape(const OpShapes& op) {
  return std::all_of(op.in.begin(), op.in.end(), [&](const Shape& x) { return x == op.out[0]; });
}

}  // namespace

std::vector<OpFacts> pointwise_ops() {
  using enum OpKind;
  return {
      row<ActivationAttrs>(activation, "activation", {1, 1}, {1, 1})
          .cuts("s", "s")
          .is(&OpFacts::by_rows)
          .infers(same_as_input),
      row<ActivationAttrs>(activation_backward, "activation_backward", {2, 2}, {1, 1})
          .cuts("s", "s")
          .is(&OpFacts::by_rows)
          .checks(check_all_same),
      row<DropoutAttrs>(dropout, "dropout", {1, 1}, {1, 1}).cuts("s", "s").infers(same_as_input),
      row<DropoutAttrs>(dropout_backward, "dropout_backward", {1, 1}, {1, 1})
          .cuts("s", "s")
          .checks(check_all_same),
      row<NoAttrs>(add, "add", {2, 2}, {1, 1})
          .cuts("s", "s")
          .is(&OpFacts::by_rows)
          .infers(same_as_inputs)
          .is(&OpFacts::dear),
      row<NoAttrs>(multiply, "multiply", {2, 2}, {1, 1})
          .cuts("s", "s")
          .is(&OpFacts::by_rows)
          .infers(same_as_inputs),
      row<AxisAttrs>(softmax, "softmax", {1, 1}, {1, 1})
          .cuts("s", "s", leaves_batch)
          .is(&OpFacts::by_rows)
          .infers(softmax_shape),
      row<AxisAttrs>(softmax_backward, "softmax_backward", {2, 2}, {1, 1})
          .cuts("s", "s", leaves_batch)
          .is(&OpFacts::by_rows)
          .checks(check_all_same),
      row<AxisAttrs>(log_softmax, "log_softmax", {1, 1}, {1, 1})
          .cuts("s", "s", leaves_batch)
          .is(&OpFacts::by_rows)
          .infers(softmax_shape),
      row<AxisAttrs>(log_softmax_backward, "log_softmax_backward", {2, 2}, {1, 1})
          .cuts("s", "s", leaves_batch)
          .is(&OpFacts::by_rows)
          .checks(check_all_same),
      row<PointwiseAttrs>(pointwise, "pointwise", {1, kManyTensors}, {1, kManyTensors})
          .cuts("s", "s", one_shape)
          .is(&OpFacts::by_rows)
          .holds("n", "n")
          .infers(pointwise_shapes)
          .checks(check_pointwise),
  };
}

}  // namespace penstock::ir::rules
