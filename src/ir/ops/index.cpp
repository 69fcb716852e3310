#include <algorithm>

#include "ir/ops/rules.h"

namespace penstock::ir::rules {
namespace {

Shapes reduce_shape(const Attrs& attrs, const Shapes& in) {
  const auto& axes = attrs.get<ReduceAttrs>().axes;
  Shape y = in[0];
  std::int64_t before = -1;
  for (const std::int64_t axis : axes) {
    expect(axis > before, "the axes of a reduction are not in ascending order");
    before = axis;
    y.set(checked_axis(in[0], axis), 1);
  }
  return {y};
}

void check_reduce(const OpShapes& op) {
  const Shape y = reduce_shape(op.attrs, op.in)[0];
  expect(y.elements() == op.out[0].elements(), "{} where {} elements are needed", op.out[0].to_string(),
         y.elements());
}

Shapes argmax_shape(const Attrs& attrs, const Shapes& in) {
  Shape y = in[0];
  y.set(checked_axis(in[0], attrs.get<AxisAttrs>().axis), 1);
  return {y};
}

/// `part` lies within `whole` where the attributes say.
void expect_strided(const StridedAttrs& a, const Shape& whole, const Shape& part) {
  const bool fits =
      a.begin.size() == whole.rank() && a.step.size() == whole.rank() && part.rank() == whole.rank();
  expect(fits, "a slice needs begin and step for each axis of {}", whole.to_string());
  for (std::size_t i = 0; i < whole.rank(); ++i) {
    const std::int64_t last = a.begin[i] + (part[i] - 1) * a.step[i];
    expect(a.step[i] != 0 && std::min(a.begin[i], last) >= 0 && std::max(a.begin[i], last) < whole[i],
           "a slice from {} to {} is not within axis {} of {}", a.begin[i], last, i, whole.to_string());
  }
}

void check_slice(const OpShapes& op) {
  expect_strided(op.attrs.get<StridedAttrs>(), op.in[0], op.out[0]);
}

void check_slice_backward(const OpShapes& op) {
  expect_strided(op.attrs.get<StridedAttrs>(), op.out[0], op.in[0]);
}

Shapes gather_shape(const Attrs& attrs, const Shapes& in) {
  const std::size_t axis = checked_axis(in[0], attrs.get<AxisAttrs>().axis);
  Extents dims = in[0].dims();
  const auto place = dims.begin() + static_cast<std::ptrdiff_t>(axis);
  dims.insert(dims.erase(place), in[1].dims().begin(), in[1].dims().end());
  return {Shape(dims)};
}

void check_gather_backward(const OpShapes& op) {
  expect_shape(op.in[0], gather_shape(op.attrs, {op.out[0], op.in[1]})[0], "the gradient of the result");
}

}  // namespace

std::vector<OpFacts> index_ops() {
  using enum OpKind;
  return {
      row<ReduceAttrs>(reduce, "reduce", {1, 1}, {1, 1}).infers(reduce_shape).checks(check_reduce),
      row<AxisAttrs>(argmax, "argmax", {1, 1}, {1, 1}).holds("f", "i").infers(argmax_shape),
      row<StridedAttrs>(slice, "slice", {1, 1}, {1, 1}).holds("t", "t").checks(check_slice),
      row<StridedAttrs>(slice_backward, "slice_backward", {1, 1}, {1, 1}).checks(check_slice_backward),
      row<AxisAttrs>(gather, "gather", {2, 2}, {1, 1}).holds("ti", "t").infers(gather_shape),
      row<AxisAttrs>(gather_backward, "gather_backward", {2, 2}, {1, 1})
          .holds("fi", "f")
          .checks(check_gather_backward),
  };
}

}  // namespace penstock::ir::rules
