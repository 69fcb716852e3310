#include "ir/ops/rules.h"

namespace penstock::ir::rules {
namespace {

Shapes statistics_shapes(const Attrs& /*attrs*/, const Shapes& in) {
  expect_channels(in[0]);
  return {Shape{in[0][1]}, Shape{in[0][1]}};
}

Shapes batch_norm_shapes(const Attrs& attrs, const Shapes& in) {
  const auto& a = attrs.get<NormAttrs>();
  const Shape& x = in[0];
  expect_channels(x);
  for (std::size_t i = 1; i < 5; ++i) expect_vector(in[i], x[1], "a vector of the batch norm");
  expect(in.size() == (a.add ? 6U : 5U), "a residual input and the attribute `add` go together");
  if (a.add) expect_same(x, in[5]);
  expect(!a.mask || a.relu, "a mask needs a ReLU");
  expect(!a.silu || !(a.relu || a.add), "SiLU stands behind the norm alone");
  expect(a.ceiling == 0 || (a.relu && a.ceiling > 0), "a ceiling needs a ReLU and is above 0");
  return a.mask ? Shapes{x, x} : Shapes{x};
}

void check_batch_norm_backward(const OpShapes& op) {
  const auto& a = op.attrs.get<NormAttrs>();
  expect(op.in.size() == (a.mask ? 6U : 5U), "a mask and the attribute `mask` go together");
  expect(a.relu == a.mask, "the gradient of a fused ReLU needs its mask");
  expect(op.out.size() == (a.add ? 4U : 3U), "a residual gradient and the attribute `add` go together");
  const Shape& x = op.in[0];
  expect_channels(x);
  expect_shape(op.in[1], x, "dy");
  expect_inputs(op, 2, 5, Shape{x[1]});
  expect_shape(op.out[0], x, "dx");
  expect_outputs(op, 1, 3, Shape{x[1]});
  expect_outputs(op, 3, op.out.size(), x);
}

/// Pairs of mean and variance of one slice each.
void check_combine(const OpShapes& op) {
  expect(op.in.size() == 2 * op.attrs.get<CombineAttrs>().counts.size(), "{} statistics of {} slices",
         op.in.size(), op.attrs.get<CombineAttrs>().counts.size());
  expect_inputs(op, 1, op.in.size(), op.in[0]);
  expect_outputs(op, 0, 2, op.in[0]);
}

void check_norm_backward_sums(const OpShapes& op) {
  const auto& a = op.attrs.get<NormAttrs>();
  expect(op.in.size() == (a.mask ? 5U : 4U), "a mask and the attribute `mask` go together");
  expect(op.out.size() == (a.add ? 3U : 2U), "a residual gradient and the attribute `add` go together");
  const Shape& x = op.in[0];
  expect_channels(x);
  expect_shape(op.in[1], x, "dy");
  expect_inputs(op, 2, 4, Shape{x[1]});
  expect_outputs(op, 0, 2, Shape{x[1]});
  expect_outputs(op, 2, op.out.size(), x);
}

void check_norm_backward_data(const OpShapes& op) {
  const auto& a = op.attrs.get<NormAttrs>();
  expect(op.in.size() == (a.mask ? 8U : 7U), "a mask and the attribute `mask` go together");
  expect(!a.add, "the residual gradient is an output of the sums");
  const Shape& x = op.in[0];
  expect_channels(x);
  expect(a.count > 0, "it does not say how many elements a channel has");
  expect_shape(op.in[1], x, "dy");
  expect_inputs(op, 2, 7, Shape{x[1]});
  expect_outputs(op, 0, 1, x);
}

/// All three: the gradient, its sums and its data.
void check_silu_backward(const OpShapes& op) {
  const Shape& x = op.in[0];
  expect_channels(x);
  expect(op.attrs.get<NormAttrs>().silu, "the attribute `silu` is missing");
  expect_shape(op.in[1], x, "dy");
  expect_inputs(op, 2, op.in.size(), Shape{x[1]});
  const bool sums_only = op.out.size() == 2;
  if (!sums_only) expect_shape(op.out[0], x, "dx");
  expect_outputs(op, sums_only ? 0 : 1, op.out.size(), Shape{x[1]});
}

void check_silu_backward_data(const OpShapes& op) {
  expect(op.attrs.get<NormAttrs>().count > 0, "it does not say how many elements a channel has");
  check_silu_backward(op);
}

Shapes update_shapes(const Attrs& /*attrs*/, const Shapes& in) {
  for (const Shape& shape : in) expect_same(in[0], shape);
  return {in[0], in[0]};
}

Shapes lrn_shape(const Attrs& attrs, const Shapes& in) {
  expect(in[0].rank() >= 2 && attrs.get<LrnAttrs>().size >= 1, "{} has no channels", in[0].to_string());
  return {in[0]};
}

}  // namespace

std::vector<OpFacts> norm_ops() {
  using enum OpKind;
  return {
      row<NormAttrs>(batch_norm_statistics, "batch_norm_statistics", {1, 1}, {2, 2})
          .infers(statistics_shapes)
          .cuts("s", "m")
          .is(&OpFacts::by_rows),
      row<NormAttrs>(batch_norm, "batch_norm", {5, 6}, {1, 2})
          .holds("f", "fw")
          .infers(batch_norm_shapes)
          .cuts("swwwws", "s")
          .is(&OpFacts::by_rows),
      row<NormAttrs>(batch_norm_backward, "batch_norm_backward", {5, 6}, {3, 4})
          .holds("fffffw", "f")
          .checks(check_batch_norm_backward),
      row<CombineAttrs>(combine_statistics, "combine_statistics", {2, kManyTensors}, {2, 2})
          .checks(check_combine),
      row<NormAttrs>(batch_norm_backward_sums, "batch_norm_backward_sums", {4, 5}, {2, 3})
          .holds("ffffw", "f")
          .checks(check_norm_backward_sums)
          .cuts("sswws", "++s")
          .is(&OpFacts::by_rows),
      row<NormAttrs>(batch_norm_backward_data, "batch_norm_backward_data", {7, 8}, {1, 1})
          .holds("fffffffw", "f")
          .checks(check_norm_backward_data)
          .cuts("sswwwwws", "s")
          .is(&OpFacts::by_rows),
      row<NormAttrs>(batch_norm_silu_backward, "batch_norm_silu_backward", {6, 6}, {3, 3})
          .checks(check_silu_backward),
      row<NormAttrs>(batch_norm_silu_backward_sums, "batch_norm_silu_backward_sums", {6, 6}, {2, 2})
          .checks(check_silu_backward)
          .cuts("sswwww", "+")
          .is(&OpFacts::by_rows),
      row<NormAttrs>(batch_norm_silu_backward_data, "batch_norm_silu_backward_data", {8, 8}, {1, 1})
          .checks(check_silu_backward_data)
          .cuts("sswwwwww", "s")
          .is(&OpFacts::by_rows),
      row<StatisticsAttrs>(statistics_update, "statistics_update", {4, 4}, {2, 2}).infers(update_shapes),
      row<LrnAttrs>(lrn, "lrn", {1, 1}, {1, 1}).infers(lrn_shape).cuts("s", "s"),
      row<LrnAttrs>(lrn_backward, "lrn_backward", {2, 2}, {1, 1}).checks(check_all_same).cuts("s", "s"),
  };
}

}  // namespace penstock::ir::rules
