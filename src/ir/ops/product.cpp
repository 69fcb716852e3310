#include "ir/ops/rules.h"

namespace penstock::ir::rules {
namespace {

Shapes linear_shape(const Attrs& /*attrs*/, const Shapes& in) {
  const Shape& x = in[0];
  const Shape& w = in[1];
  expect(x.rank() >= 1 && w.rank() == 2, "{} x {} is no linear layer", x.to_string(), w.to_string());
  expect(w[1] == x[x.rank() - 1], "weights {} take {} features, {} has {}", w.to_string(), w[1],
         x.to_string(), x[x.rank() - 1]);
  if (in.size() > 2) expect_vector(in[2], w[0], "the bias");
  Shape y = x;
  y[y.rank() - 1] = w[0];
  return {y};
}

void check_linear_backward_weights(const OpShapes& op) {
  expect_backward_of(OpKind::linear, op.attrs, {op.in[0], op.out[0]}, op.in[1]);
  if (op.out.size() > 1) expect_shape(op.out[1], Shape{op.out[0][0]}, "the bias gradient");
}

Shapes matmul_shape(const Attrs& attrs, const Shapes& in) {
  const auto& m = attrs.get<MatmulAttrs>();
  const Shape& a = in[0];
  const Shape& b = in[1];
  expect(a.rank() >= 2 && a.rank() == b.rank(), "{} and {} are not matrices of one rank", a.to_string(),
         b.to_string());
  const std::size_t row = a.rank() - 2;
  const std::size_t column = a.rank() - 1;
  for (std::size_t i = 0; i < row; ++i) {
    expect(a[i] == b[i], "the leading extents of {} and {} differ", a.to_string(), b.to_string());
  }
  const std::int64_t inner_a = m.transpose_a ? a[row] : a[column];
  const std::int64_t inner_b = m.transpose_b ? b[column] : b[row];
  expect(inner_a == inner_b, "the inner extents of {} and {} differ: {} and {}", a.to_string(), b.to_string(),
         inner_a, inner_b);
  Shape y = a;
  y[row] = m.transpose_a ? a[column] : a[row];
  y[column] = m.transpose_b ? b[row] : b[column];
  return {y};
}

double matmul_flops(const OpShapes& op) {
  const Shape& a = op.in[0];
  const std::int64_t inner = a[a.rank() - (op.attrs.get<MatmulAttrs>().transpose_a ? 2 : 1)];
  return 2 * static_cast<double>(op.out[0].elements()) * static_cast<double>(inner);
}

Shapes bias_shape(const Attrs& /*attrs*/, const Shapes& in) {
  expect_channels(in[0]);
  expect_vector(in[1], in[0][1], "the bias");
  return {in[0]};
}

/// Each value of `outputs`, the result of a linear layer, sums up a row of `weights`.
double flops(const Shape& outputs, const Shape& weights) {
  return 2 * static_cast<double>(outputs.elements()) * static_cast<double>(weights[1]);
}

}  // namespace

std::vector<OpFacts> product_ops() {
  using enum OpKind;
  constexpr auto dear = &OpFacts::dear;
  return {
      row<LinearAttrs>(linear, "linear", {2, 3}, {1, 1})
          .infers(linear_shape)
          .costs([](const OpShapes& op) { return flops(op.out[0], op.in[1]); })
          .is(dear),
      row<LinearAttrs>(linear_backward_data, "linear_backward_data", {2, 2}, {1, 1})
          .checks([](const OpShapes& op) {
            expect_backward_of(linear, op.attrs, {op.out[0], op.in[1]}, op.in[0]);
          })
          .costs([](const OpShapes& op) { return flops(op.in[0], op.in[1]); })
          .is(dear),
      row<LinearAttrs>(linear_backward_weights, "linear_backward_weights", {2, 2}, {1, 2})
          .checks(check_linear_backward_weights)
          .costs([](const OpShapes& op) { return flops(op.in[1], op.out[0]); })
          .is(dear),
      row<MatmulAttrs>(matmul, "matmul", {2, 2}, {1, 1}).infers(matmul_shape).costs(matmul_flops).is(dear),
      row<NoAttrs>(bias, "bias", {2, 2}, {1, 1}).infers(bias_shape),
      row<NoAttrs>(bias_backward, "bias_backward", {1, 1}, {1, 1}).checks([](const OpShapes& op) {
        expect_backward_of(bias, op.attrs, {op.in[0], op.out[0]}, op.in[0]);
      }),
  };
}

}  // namespace penstock::ir::rules
