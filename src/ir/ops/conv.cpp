#include <algorithm>

#include "ir/ops/rules.h"

namespace penstock::ir::rules {
namespace {

void expect_conv_attrs(const Shape& x, const Shape& w, const ConvAttrs& a) {
  expect_spatial(x);
  expect(w.rank() == x.rank(), "weights {} have another rank than {}", w.to_string(), x.to_string());
  expect_one_per_axis(x, "stride", a.stride, 1);
  expect_one_per_axis(x, "dilation", a.dilation, 1);
  expect_one_per_axis(x, "padding", a.padding_begin, 0);
  expect_one_per_axis(x, "padding", a.padding_end, 0);
  expect(a.groups >= 1, "groups {} is not positive", a.groups);
}

Shapes conv_shape(const Attrs& attrs, const Shapes& in) {
  const auto& a = attrs.get<ConvAttrs>();
  const Shape& x = in[0];
  const Shape& w = in[1];
  expect_conv_attrs(x, w, a);
  expect(w[1] * a.groups == x[1], "weights {} in {} groups take {} channels, {} has {}", w.to_string(),
         a.groups, w[1] * a.groups, x.to_string(), x[1]);
  expect(w[0] % a.groups == 0, "{} output channels are no multiple of {} groups", w[0], a.groups);
  if (in.size() > 2) expect_vector(in[2], w[0], "the bias");
  Shape y = x;
  y.set(1, w[0]);
  for (std::size_t i = 0; i < a.stride.size(); ++i) {
    y.set(i + 2,
          windows(x, i + 2, w[i + 2], a.stride[i], a.dilation[i], a.padding_begin[i] + a.padding_end[i]));
  }
  return {y};
}

Shapes conv_transpose_shape(const Attrs& attrs, const Shapes& in) {
  const auto& a = attrs.get<ConvAttrs>();
  const Shape& x = in[0];
  const Shape& w = in[1];
  expect_conv_attrs(x, w, a);
  if (!a.output_padding.empty()) expect_one_per_axis(x, "output padding", a.output_padding, 0);
  expect(w[0] == x[1], "weights {} take {} channels, {} has {}", w.to_string(), w[0], x.to_string(), x[1]);
  expect(x[1] % a.groups == 0, "{} input channels are no multiple of {} groups", x[1], a.groups);
  if (in.size() > 2) expect_vector(in[2], w[1] * a.groups, "the bias");
  Shape y = x;
  y.set(1, w[1] * a.groups);
  for (std::size_t i = 0; i < a.stride.size(); ++i) {
    const std::int64_t extra = a.output_padding.empty() ? 0 : a.output_padding[i];
    expect(extra < std::max(a.stride[i], a.dilation[i]),
           "output padding {} must be less than stride or dilation", extra);
    y.set(i + 2, (x[i + 2] - 1) * a.stride[i] - a.padding_begin[i] - a.padding_end[i] +
                     a.dilation[i] * (w[i + 2] - 1) + extra + 1);
  }
  return {y};
}

/// Inputs dy, w; the output is dx.
template <OpKind kind>
void check_backward_data(const OpShapes& op) {
  expect_backward_of(kind, op.attrs, {op.out[0], op.in[1]}, op.in[0]);
}

/// Inputs x, dy; the outputs are dw and maybe db.
template <OpKind kind>
void check_backward_weights(const OpShapes& op) {
  expect_backward_of(kind, op.attrs, {op.in[0], op.out[0]}, op.in[1]);
  if (op.out.size() < 2) return;
  const Shape& w = op.out[0];
  const Shape bias{kind == OpKind::conv ? w[0] : w[1] * op.attrs.get<ConvAttrs>().groups};
  expect_shape(op.out[1], bias, "the bias gradient");
}

/// Each value of `outputs`, the result of a convolution, sums up a row of `weights`.
double flops(const Shape& outputs, const Shape& weights) {
  return 2 * static_cast<double>(outputs.elements()) * static_cast<double>(weights.elements()) /
         static_cast<double>(weights[0]);
}

}  // namespace

std::vector<OpFacts> conv_ops() {
  using enum OpKind;
  constexpr auto dear = &OpFacts::dear;
  return {
      row<ConvAttrs>(conv, "conv", {2, 3}, {1, 1})
          .cuts("sww", "s")
          .is(&OpFacts::by_rows)
          .infers(conv_shape)
          .costs([](const OpShapes& op) { return flops(op.out[0], op.in[1]); })
          .is(dear),
      row<ConvAttrs>(conv_backward_data, "conv_backward_data", {2, 2}, {1, 1})
          .cuts("sw", "s")
          .is(&OpFacts::by_rows)
          .checks(check_backward_data<conv>)
          .costs([](const OpShapes& op) { return flops(op.in[0], op.in[1]); })
          .is(dear),
      row<ConvAttrs>(conv_backward_weights, "conv_backward_weights", {2, 2}, {1, 2})
          .cuts("ss", "+")
          .is(&OpFacts::by_rows)
          .checks(check_backward_weights<conv>)
          .costs([](const OpShapes& op) { return flops(op.in[1], op.out[0]); })
          .is(dear),
      row<ConvAttrs>(conv_transpose, "conv_transpose", {2, 3}, {1, 1})
          .cuts("sww", "s")
          .is(&OpFacts::by_rows)
          .infers(conv_transpose_shape)
          .costs([](const OpShapes& op) { return flops(op.in[0], op.in[1]); })
          .is(dear),
      row<ConvAttrs>(conv_transpose_backward_data, "conv_transpose_backward_data", {2, 2}, {1, 1})
          .cuts("sw", "s")
          .is(&OpFacts::by_rows)
          .checks(check_backward_data<conv_transpose>)
          .costs([](const OpShapes& op) { return flops(op.out[0], op.in[1]); })
          .is(dear),
      row<ConvAttrs>(conv_transpose_backward_weights, "conv_transpose_backward_weights", {2, 2}, {1, 2})
          .cuts("ss", "+")
          .is(&OpFacts::by_rows)
          .checks(check_backward_weights<conv_transpose>)
          .costs([](const OpShapes& op) { return flops(op.in[0], op.out[0]); })
          .is(dear),
  };
}

}  // namespace penstock::ir::rules
