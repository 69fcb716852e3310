#include "ir/ops/rules.h"

namespace penstock::ir::rules {
namespace {

/// Which axis of the weights stands for the layer's inputs, and which for its outputs.
std::size_t input_axis(const Attrs& attrs) {
  return attrs.get<LinearAttrs>().turned ? 0 : 1;
}

Shapes linear_shape(const Attrs& attrs, const Shapes& in) {
  const Shape& x = in[0];
  const Shape& w = in[1];
  expect(x.rank() >= 1 && w.rank() == 2, "{} x {} is no linear layer", x.to_string(), w.to_string());
  const std::int64_t inputs = w[input_axis(attrs)];
  const std::int64_t outputs = w[1 - input_axis(attrs)];
  expect(inputs == x[x.rank() - 1], "weights {} take {} features, {} has {}", w.to_string(), inputs,
         x.to_string(), x[x.rank() - 1]);
  if (in.size() > 2) expect_vector(in[2], outputs, "the bias");
  Shape y = x;
  y.set(y.rank() - 1, outputs);
  return {y};
}

/// dw may be some rows of the weights' gradient only.
void check_linear_backward_weights(const OpShapes& op) {
  const auto& a = op.attrs.get<LinearAttrs>();
  const Shape& x = op.in[0];
  const Shape& dy = op.in[1];
  const Shape& dw = op.out[0];
  expect(x.rank() >= 1 && dw.rank() == 2, "{} is no gradient of a linear layer", dw.to_string());
  const Shape whole =
      a.turned ? Shape{x[x.rank() - 1], dy[dy.rank() - 1]} : Shape{dy[dy.rank() - 1], x[x.rank() - 1]};
  expect_backward_of(OpKind::linear, op.attrs, {x, whole}, dy);
  expect(a.begin >= 0 && a.begin + dw[0] <= whole[0] && dw[1] == whole[1],
         "{} from {} on is no gradient of {}", dw.to_string(), a.begin, whole.to_string());
  if (op.out.size() > 1) expect_shape(op.out[1], Shape{dy[dy.rank() - 1]}, "the bias gradient");
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
  y.set(row, m.transpose_a ? a[column] : a[row]);
  y.set(column, m.transpose_b ? b[row] : b[column]);
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

/// Each row of `x` meets each of the weights.
double flops(const Shape& x, const Shape& weights) {
  return 2 * static_cast<double>(x.elements(0, x.rank() - 1)) * static_cast<double>(weights.elements());
}

/// One vector a sample. The gradient of the weights is not cut: all slices of the batch would have all of it
/// in memory, which slice_updates() has in slices of its own.
bool has_vectors(const OpShapes& op) {
  return op.in[0].rank() == 2 && op.out[0].rank() == 2;
}

}  // namespace

std::vector<OpFacts> product_ops() {
  using enum OpKind;
  constexpr auto dear = &OpFacts::dear;
  return {
      row<LinearAttrs>(linear, "linear", {2, 3}, {1, 1})
          .infers(linear_shape)
          .costs([](const OpShapes& op) { return flops(op.out[0], op.in[1]); })
          .cuts("sw", "s", has_vectors)
          .is(dear),
      row<LinearAttrs>(linear_backward_data, "linear_backward_data", {2, 2}, {1, 1})
          .checks([](const OpShapes& op) {
            expect_backward_of(linear, op.attrs, {op.out[0], op.in[1]}, op.in[0]);
          })
          .costs([](const OpShapes& op) { return flops(op.in[0], op.in[1]); })
          .cuts("sw", "s", has_vectors)
          .is(dear),
      row<LinearAttrs>(linear_backward_weights, "linear_backward_weights", {2, 2}, {1, 2})
          .checks(check_linear_backward_weights)
          .costs([](const OpShapes& op) { return flops(op.in[1], op.out[0]); })
          .is(dear),
      row<MatmulAttrs>(matmul, "matmul", {2, 2}, {1, 1}).infers(matmul_shape).costs(matmul_flops).is(dear),
      row<NoAttrs>(bias, "bias", {2, 2}, {1, 1}).infers(bias_shape).cuts("sw", "s").is(&OpFacts::by_rows),
      row<NoAttrs>(bias_backward, "bias_backward", {1, 1}, {1, 1})
          .cuts("s", "+")
          .is(&OpFacts::by_rows)
          .checks([](const OpShapes& op) {
            expect_backward_of(bias, op.attrs, {op.in[0], op.out[0]}, op.in[0]);
          }),
  };
}

}  // namespace penstock::ir::rules
