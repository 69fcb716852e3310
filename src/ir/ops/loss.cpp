#include "ir/ops/rules.h"

namespace penstock::ir::rules {
namespace {

void expect_labels(const Shape& logits, const Shape& labels) {
  expect(logits.rank() >= 2, "{} are no logits", logits.to_string());
  Extents dims = logits.dims();
  dims.erase(dims.begin() + 1);
  expect(labels.dims() == dims, "labels {} do not fit logits {}", labels.to_string(), logits.to_string());
}

Shapes cross_entropy_shapes(const Attrs& /*attrs*/, const Shapes& in) {
  expect_labels(in[0], in[1]);
  return {Shape{1}, in[0]};
}

void check_cross_entropy_backward(const OpShapes& op) {
  expect_labels(op.in[0], op.in[1]);
  expect_outputs(op, 0, 1, op.in[0]);
}

Shapes count_shape(const Attrs& /*attrs*/, const Shapes& in) {
  expect_labels(in[0], in[1]);
  if (in.size() > 2) expect_vector(in[2], 1, "the count so far");
  return {Shape{1}};
}

Shapes nll_shapes(const Attrs& /*attrs*/, const Shapes& in) {
  expect_labels(in[0], in[1]);
  if (in.size() > 2) expect_vector(in[2], in[0][1], "the class weights");
  return {Shape{1}, Shape{1}};
}

void check_nll_backward(const OpShapes& op) {
  expect_labels(op.out[0], op.in[0]);
  expect_inputs(op, 1, 2, Shape{1});
  expect(op.in[2].elements() == 1, "the gradient of a loss is {}", op.in[2].to_string());
  if (op.in.size() > 3) expect_vector(op.in[3], op.out[0][1], "the class weights");
}

}  // namespace

std::vector<OpFacts> loss_ops() {
  using enum OpKind;
  return {
      row<MeanAttrs>(cross_entropy, "cross_entropy", {2, 2}, {2, 2})
          .holds("fi", "f")
          .cuts("s", "+s")
          .is(&OpFacts::by_rows)
          .infers(cross_entropy_shapes)
          .is(&OpFacts::dear),
      row<MeanAttrs>(cross_entropy_backward, "cross_entropy_backward", {2, 2}, {1, 1})
          .holds("fi", "f")
          .cuts("s", "s")
          .is(&OpFacts::by_rows)
          .checks(check_cross_entropy_backward)
          .is(&OpFacts::dear),
      row<NllAttrs>(nll_loss, "nll_loss", {2, 3}, {2, 2})
          .holds("fif", "f")
          .infers(nll_shapes)
          .is(&OpFacts::dear),
      row<NllAttrs>(nll_loss_backward, "nll_loss_backward", {3, 4}, {1, 1})
          .holds("if", "f")
          .checks(check_nll_backward)
          .is(&OpFacts::dear),
      row<NoAttrs>(count_correct, "count_correct", {2, 3}, {1, 1})
          .holds("fi", "i")
          .cuts("ssw", "a")
          .is(&OpFacts::by_rows)
          .infers(count_shape),
  };
}

}  // namespace penstock::ir::rules
