#include <algorithm>

#include "ir/ops/rules.h"

namespace penstock::ir::rules {
namespace {

Shapes concat_shape(const Attrs& attrs, const Shapes& in) {
  const std::size_t axis = checked_axis(in[0], attrs.get<AxisAttrs>().axis);
  Shape y = in[0];
  for (std::size_t i = 1; i < in.size(); ++i) {
    Shape other = in[i];
    expect(other.rank() == y.rank(), "{} and {} have different ranks", in[0].to_string(), other.to_string());
    y.set(axis, y[axis] + other[axis]);
    other.set(axis, in[0][axis]);
    expect(other == in[0], "{} and {} differ outside of axis {}", in[0].to_string(), in[i].to_string(), axis);
  }
  return {y};
}

void check_split(const OpShapes& op) {
  expect_shape(op.in[0], concat_shape(op.attrs, op.out)[0], "the input");
}

Shape padded(const Shape& x, const PadAttrs& a, int sign) {
  expect(a.begin.size() == x.rank() && a.end.size() == x.rank(), "padding needs one value per axis of {}",
         x.to_string());
  Shape y = x;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    expect(a.begin[i] >= 0 && a.end[i] >= 0, "negative padding of axis {}", i);
    y.set(i, y[i] + sign * (a.begin[i] + a.end[i]));
  }
  return y;
}

Shapes pad_shape(const Attrs& attrs, const Shapes& in) {
  return {padded(in[0], attrs.get<PadAttrs>(), 1)};
}

Shapes crop_shape(const Attrs& attrs, const Shapes& in) {
  return {padded(in[0], attrs.get<PadAttrs>(), -1)};
}

void check_reshape(const OpShapes& op) {
  expect(op.in[0].elements() == op.out[0].elements(), "{} has other elements than {}", op.out[0].to_string(),
         op.in[0].to_string());
}

Shapes transpose_shape(const Attrs& attrs, const Shapes& in) {
  const auto& order = attrs.get<TransposeAttrs>().order;
  Extents sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool fits = sorted.size() == in[0].rank();
  for (std::size_t i = 0; fits && i < sorted.size(); ++i) fits = sorted[i] == static_cast<std::int64_t>(i);
  expect(fits, "the order is no permutation of the axes of {}", in[0].to_string());
  Shape y = in[0];
  for (std::size_t i = 0; i < y.rank(); ++i) y.set(i, in[0][static_cast<std::size_t>(order[i])]);
  return {y};
}

bool pads_samples(const OpShapes& op) {
  const auto& a = op.attrs.get<PadAttrs>();
  return a.begin[0] == 0 && a.end[0] == 0;
}

bool keeps_batch_first(const OpShapes& op) {
  return op.attrs.get<TransposeAttrs>().order[0] == 0;
}

}  // namespace

std::vector<OpFacts> shape_ops() {
  using enum OpKind;
  return {
      row<AxisAttrs>(concat, "concat", {1, kManyTensors}, {1, 1})
          .cuts("s", "s", leaves_batch)
          .is(&OpFacts::by_rows)
          .infers(concat_shape)
          .is(&OpFacts::dear),
      row<AxisAttrs>(split, "split", {1, 1}, {1, kManyTensors})
          .cuts("s", "s", leaves_batch)
          .is(&OpFacts::by_rows)
          .checks(check_split),
      row<PadAttrs>(pad, "pad", {1, 1}, {1, 1}).cuts("s", "s", pads_samples).infers(pad_shape),
      row<PadAttrs>(crop, "crop", {1, 1}, {1, 1}).cuts("s", "s", pads_samples).infers(crop_shape),
      row<NoAttrs>(reshape, "reshape", {1, 1}, {1, 1}).cuts("s", "s").holds("t", "t").checks(check_reshape),
      row<TransposeAttrs>(transpose, "transpose", {1, 1}, {1, 1})
          .cuts("s", "s", keeps_batch_first)
          .infers(transpose_shape),
      row<NoAttrs>(reorder, "reorder", {1, 1}, {1, 1}).holds("t", "t").infers(same_as_input),
  };
}

}  // namespace penstock::ir::rules
