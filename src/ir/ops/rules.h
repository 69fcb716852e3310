#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "ir/op_table.h"

/// What the rows of the op table are written with.
namespace penstock::ir::rules {

using Extents = std::vector<std::int64_t>;

/// A row under construction; `row<ConvAttrs>(OpKind::conv, "conv", {2, 3}, {1, 1}).infers(...)`.
struct Row : OpFacts {
  Row holds(const char* inputs, const char* outputs) const {
    return with([&](Row& r) { r.input_types = inputs, r.output_types = outputs; });
  }
  Row infers(decltype(OpFacts::infer) rule) const {
    return with([&](Row& r) { r.infer = rule; });
  }
  Row checks(decltype(OpFacts::check) rule) const {
    return with([&](Row& r) { r.check = rule; });
  }
  Row costs(decltype(OpFacts::flops) rule) const {
    return with([&](Row& r) { r.flops = rule; });
  }
  Row cuts(const char* inputs, const char* outputs, decltype(OpFacts::can_cut) where = nullptr) const {
    return with([&](Row& r) { r.cut_inputs = inputs, r.cut_outputs = outputs, r.can_cut = where; });
  }
  Row is(bool OpFacts::*fact) const {
    return with([&](Row& r) { r.*fact = true; });
  }

 private:
  template <typename Change>
  Row with(const Change& change) const {
    Row changed = *this;
    change(changed);
    return changed;
  }
};

template <typename AttrsType>
Row row(OpKind kind, const char* name, Count inputs, Count outputs) {
  Row made;
  made.kind = kind;
  made.name = name;
  made.attrs = &typeid(AttrsType);
  made.inputs = inputs;
  made.outputs = outputs;
  return made;
}

/// Says why shapes do not fit; leaves a rule from any depth and is caught by infer_shapes() and check_op().
struct Misfit {
  std::string text;
};

template <typename... Args>
void expect(bool condition, fmt::format_string<Args...> text, Args&&... args) {
  if (!condition) throw Misfit{fmt::format(text, std::forward<Args>(args)...)};
}

void expect_same(const Shape& a, const Shape& b);
/// `have` is named in the message.
void expect_shape(const Shape& have, const Shape& need, const std::string& what);
void expect_inputs(const OpShapes& op, std::size_t first, std::size_t last, const Shape& need);
void expect_outputs(const OpShapes& op, std::size_t first, std::size_t last, const Shape& need);
void expect_channels(const Shape& x);
/// [N, C] and one to three spatial extents.
void expect_spatial(const Shape& x);
void expect_one_per_axis(const Shape& x, const char* what, const Extents& values, std::int64_t smallest);
void expect_vector(const Shape& v, std::int64_t extent, const char* what);
std::size_t checked_axis(const Shape& x, std::int64_t axis);

/// Extent of the result of a window that moves over `x` along `axis`.
std::int64_t windows(const Shape& x, std::size_t axis, std::int64_t kernel, std::int64_t stride,
                     std::int64_t dilation, std::int64_t padding);

/// The output has the first input's shape.
Shapes same_as_input(const Attrs& attrs, const Shapes& in);
/// The shape that both broadcast to, by NumPy's rule.
Shape broadcast(const Shape& a, const Shape& b);
/// Of ops along an axis: it is not the first one.
bool leaves_batch(const OpShapes& op);
/// All inputs and the output have one shape.
Shapes same_as_inputs(const Attrs& attrs, const Shapes& in);
void check_all_same(const OpShapes& op);
/// A forward op of kind `kind` on `inputs` would have made dy.
void expect_backward_of(OpKind kind, const Attrs& attrs, const Shapes& inputs, const Shape& dy);
/// For ops with one input x and its gradient: dy -> dx.
template <OpKind kind>
void check_backward_of(const OpShapes& op) {
  expect_backward_of(kind, op.attrs, {op.out[0]}, op.in[0]);
}

std::vector<OpFacts> conv_ops();
std::vector<OpFacts> product_ops();
std::vector<OpFacts> norm_ops();
std::vector<OpFacts> pointwise_ops();
std::vector<OpFacts> pool_ops();
std::vector<OpFacts> shape_ops();
std::vector<OpFacts> index_ops();
std::vector<OpFacts> loss_ops();
std::vector<OpFacts> text_ops();
std::vector<OpFacts> step_ops();

}  // namespace penstock::ir::rules
