#include "ir/ops/rules.h"

#include <algorithm>

namespace penstock::ir::rules {

void expect_same(const Shape& a, const Shape& b) {
  expect(a == b, "the shapes {} and {} differ", a.to_string(), b.to_string());
}

void expect_shape(const Shape& have, const Shape& need, const std::string& what) {
  expect(have == need, "{} is {} where {} is needed", what, have.to_string(), need.to_string());
}

void expect_inputs(const OpShapes& op, std::size_t first, std::size_t last, const Shape& need) {
  for (std::size_t i = first; i < last; ++i) expect_shape(op.in[i], need, fmt::format("input {}", i));
}

void expect_outputs(const OpShapes& op, std::size_t first, std::size_t last, const Shape& need) {
  for (std::size_t i = first; i < last; ++i) expect_shape(op.out[i], need, fmt::format("output {}", i));
}

void expect_channels(const Shape& x) {
  expect(x.rank() >= 2, "{} has no channels", x.to_string());
}

void expect_spatial(const Shape& x) {
  expect(x.rank() >= 3 && x.rank() <= 5, "{} is not [N, C] and one to three spatial extents", x.to_string());
}

void expect_one_per_axis(const Shape& x, const char* what, const Extents& values, std::int64_t smallest) {
  const bool fits = values.size() == x.rank() - 2 &&
                    std::all_of(values.begin(), values.end(), [&](auto v) { return v >= smallest; });
  expect(fits, "{} needs one value of at least {} per spatial axis of {}", what, smallest, x.to_string());
}

void expect_vector(const Shape& v, std::int64_t extent, const char* what) {
  expect(v == Shape{extent}, "{} is {} where [{}] is needed", what, v.to_string(), extent);
}

std::size_t checked_axis(const Shape& x, std::int64_t axis) {
  expect(axis >= 0 && axis < static_cast<std::int64_t>(x.rank()), "{} has no axis {}", x.to_string(), axis);
  return static_cast<std::size_t>(axis);
}

std::int64_t windows(const Shape& x, std::size_t axis, std::int64_t kernel, std::int64_t stride,
                     std::int64_t dilation, std::int64_t padding) {
  const std::int64_t room = x[axis] + padding - dilation * (kernel - 1) - 1;
  expect(room >= 0, "the kernel covers {} elements along axis {} where {} (padding included) has only {}",
         dilation * (kernel - 1) + 1, axis, x.to_string(), x[axis] + padding);
  return room / stride + 1;
}

Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  const std::size_t offset = longer.rank() - shorter.rank();
  for (std::size_t i = 0; i < shorter.rank(); ++i) {
    const std::int64_t extent = longer[offset + i];
    expect(extent == shorter[i] || extent == 1 || shorter[i] == 1, "{} and {} do not broadcast",
           a.to_string(), b.to_string());
    if (extent == 1) result.set(offset + i, shorter[i]);
  }
  return result;
}

Shapes same_as_input(const Attrs& /*attrs*/, const Shapes& in) {
  return {in[0]};
}

bool leaves_batch(const OpShapes& op) {
  return op.attrs.get<AxisAttrs>().axis > 0;
}

Shapes same_as_inputs(const Attrs& /*attrs*/, const Shapes& in) {
  for (const Shape& shape : in) expect_same(in[0], shape);
  return {in[0]};
}

void check_all_same(const OpShapes& op) {
  expect_inputs(op, 1, op.in.size(), op.in[0]);
  expect_outputs(op, 0, op.out.size(), op.in[0]);
}

void expect_backward_of(OpKind kind, const Attrs& attrs, const Shapes& inputs, const Shape& dy) {
  expect_shape(dy, op_facts(kind).infer(attrs, inputs)[0], "the gradient of the result");
}

}  // namespace penstock::ir::rules
