#include <algorithm>

#include "ir/ops/rules.h"

namespace penstock::ir::rules {
namespace {

Shapes avg_pool_shape(const Attrs& attrs, const Shapes& in) {
  const auto& a = attrs.get<PoolAttrs>();
  const Shape& x = in[0];
  expect_spatial(x);
  expect_one_per_axis(x, "kernel", a.kernel, 1);
  expect_one_per_axis(x, "stride", a.stride, 1);
  expect_one_per_axis(x, "padding", a.padding_begin, 0);
  expect_one_per_axis(x, "padding", a.padding_end, 0);
  Shape y = x;
  for (std::size_t i = 0; i < a.kernel.size(); ++i) {
    expect(std::max(a.padding_begin[i], a.padding_end[i]) < a.kernel[i],
           "padding must be smaller than the kernel's {}", a.kernel[i]);
    y.set(i + 2, windows(x, i + 2, a.kernel[i], a.stride[i], 1, a.padding_begin[i] + a.padding_end[i]));
  }
  return {y};
}

Shapes max_pool_shapes(const Attrs& attrs, const Shapes& in) {
  const Shape y = avg_pool_shape(attrs, in)[0];
  return {y, y};
}

Shapes global_pool_shape(const Attrs& /*attrs*/, const Shapes& in) {
  expect_spatial(in[0]);
  Shape y = in[0];
  for (std::size_t axis = 2; axis < y.rank(); ++axis) y.set(axis, 1);
  return {y};
}

Shapes upsample_shape(const Attrs& attrs, const Shapes& in) {
  const auto& a = attrs.get<UpsampleAttrs>();
  expect_spatial(in[0]);
  expect_one_per_axis(in[0], "factor", a.factor, 1);
  Shape y = in[0];
  for (std::size_t i = 0; i < a.factor.size(); ++i) y.set(i + 2, y[i + 2] * a.factor[i]);
  return {y};
}

}  // namespace

std::vector<OpFacts> pool_ops() {
  using enum OpKind;
  return {
      row<PoolAttrs>(max_pool, "max_pool", {1, 1}, {1, 2})
          .cuts("s", "s")
          .is(&OpFacts::by_rows)
          .holds("f", "fw")
          .infers(max_pool_shapes)
          .is(&OpFacts::outputs_optional),
      row<PoolAttrs>(max_pool_backward, "max_pool_backward", {2, 2}, {1, 1})
          .cuts("s", "s")
          .is(&OpFacts::by_rows)
          .holds("fw", "f")
          .checks(check_backward_of<max_pool>),
      row<PoolAttrs>(avg_pool, "avg_pool", {1, 1}, {1, 1})
          .cuts("s", "s")
          .is(&OpFacts::by_rows)
          .infers(avg_pool_shape),
      row<PoolAttrs>(avg_pool_backward, "avg_pool_backward", {1, 1}, {1, 1})
          .cuts("s", "s")
          .is(&OpFacts::by_rows)
          .checks(check_backward_of<avg_pool>),
      row<NoAttrs>(global_avg_pool, "global_avg_pool", {1, 1}, {1, 1})
          .cuts("s", "s")
          .infers(global_pool_shape),
      row<NoAttrs>(global_avg_pool_backward, "global_avg_pool_backward", {1, 1}, {1, 1})
          .cuts("s", "s")
          .checks(check_backward_of<global_avg_pool>),
      row<UpsampleAttrs>(upsample, "upsample", {1, 1}, {1, 1}).cuts("s", "s").infers(upsample_shape),
      row<UpsampleAttrs>(upsample_backward, "upsample_backward", {1, 1}, {1, 1})
          .cuts("s", "s")
          .checks(check_backward_of<upsample>),
  };
}

}  // namespace penstock::ir::rules
