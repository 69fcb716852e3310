#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/functions.h"
#include "models/builder_impl.h"

namespace penstock {
namespace {

ir::Reduction to_ir(Reduction function) {
  switch (function) {
    case Reduction::sum:
      return ir::Reduction::sum;
    case Reduction::mean:
      return ir::Reduction::mean;
    case Reduction::largest:
      return ir::Reduction::largest;
    case Reduction::smallest:
      return ir::Reduction::smallest;
    case Reduction::product:
      return ir::Reduction::product;
  }
  throw InternalError("to_ir: not a reduction");
}

std::int64_t counted_axis(const std::string& layer, const ir::Shape& shape, std::int64_t axis) {
  const auto rank = static_cast<std::int64_t>(shape.rank());
  if (axis < -rank || axis >= rank)
    throw UserError(fmt::format("layer {}: {} has no axis {}", layer, shape.to_string(), axis));
  return axis < 0 ? axis + rank : axis;
}

}  // namespace

Value NetworkBuilder::apply(const std::string& function, const std::vector<Value>& inputs,
                            const std::vector<float>& parameters, const std::string& name, DType type) {
  if (inputs.empty()) throw UserError(fmt::format("the function '{}' needs an input", function));
  return impl_->make(ir::OpKind::pointwise, impl_->layer_name(name, inputs[0], function.c_str()), inputs,
                     ir::PointwiseAttrs{ir::named_function(function, parameters)}, to_ir(type));
}

Value NetworkBuilder::cast(Value x, DType type, const std::string& name) {
  return apply("copy", {x}, {}, name, type);
}

Value NetworkBuilder::expand(Value x, const Extents& shape, const std::string& name) {
  const ir::Shape to(shape);
  const std::string layer = impl_->layer_name(name, x, "expand");
  const ir::Shape& from = impl_->shape(x);
  bool fits = from.rank() <= to.rank();
  for (std::size_t i = 0; fits && i < from.rank(); ++i)
    fits = from[i] == 1 || from[i] == to[to.rank() - from.rank() + i];
  if (!fits)
    throw UserError(
        fmt::format("layer {}: {} does not expand to {}", layer, from.to_string(), to.to_string()));
  const Value y = impl_->add_value(layer, impl_->tensor(x).dtype, to);
  impl_->append(ir::OpKind::pointwise, ir::Phase::forward, layer, {x}, {y},
                ir::PointwiseAttrs{ir::named_function("copy")});
  return y;
}

Value NetworkBuilder::reduce(Reduction kind, Value x, Extents axes, bool keep, const std::string& name) {
  const ir::Reduction function = to_ir(kind);
  const std::string layer = impl_->layer_name(name, x, ir::reduction_name(function));
  const ir::Shape& from = impl_->shape(x);
  if (axes.empty()) {
    axes.resize(from.rank());
    std::iota(axes.begin(), axes.end(), 0);
  }
  for (std::int64_t& axis : axes) axis = counted_axis(layer, from, axis);
  std::sort(axes.begin(), axes.end());
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < from.rank(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end();
    if (!reduced || keep) kept.push_back(reduced ? 1 : from[i]);
  }
  if (kept.empty()) kept.push_back(1);
  const ir::ReduceAttrs attrs{function, axes};
  impl_->infer(ir::OpKind::reduce, layer, {x}, attrs);
  const Value y = impl_->add_value(layer, ir::DType::f32, ir::Shape(kept));
  impl_->append(ir::OpKind::reduce, ir::Phase::forward, layer, {x}, {y}, attrs);
  return y;
}

Value NetworkBuilder::argmax(Value x, std::int64_t axis, const std::string& name) {
  const std::string layer = impl_->layer_name(name, x, "argmax");
  const ir::AxisAttrs attrs{counted_axis(layer, impl_->shape(x), axis)};
  return impl_->make(ir::OpKind::argmax, layer, {x}, attrs, ir::DType::s32);
}

Value NetworkBuilder::log_softmax(Value x, std::int64_t axis, const std::string& name) {
  const std::string layer = impl_->layer_name(name, x, "log_softmax");
  return impl_->make(ir::OpKind::log_softmax, layer, {x},
                     ir::AxisAttrs{counted_axis(layer, impl_->shape(x), axis)});
}

Value NetworkBuilder::slice(Value x, std::int64_t axis, std::int64_t begin, std::int64_t count,
                            std::int64_t step, const std::string& name) {
  const std::string layer = impl_->layer_name(name, x, "slice");
  ir::Shape part = impl_->shape(x);
  const auto along = static_cast<std::size_t>(counted_axis(layer, part, axis));
  const std::int64_t extent = part[along];
  // Looked at first, because the last element's place could overflow.
  const bool small = count >= 1 && count <= extent && step != 0 && step > -extent - 1 && step < extent + 1;
  const std::int64_t last = small ? begin + (count - 1) * step : -1;
  if (!small || begin < 0 || begin >= extent || last < 0 || last >= extent) {
    throw UserError(
        fmt::format("layer {}: {} elements from {} on in steps of {} are not within axis {} of {}", layer,
                    count, begin, step, axis, part.to_string()));
  }
  ir::StridedAttrs attrs;
  attrs.begin.assign(part.rank(), 0);
  attrs.step.assign(part.rank(), 1);
  attrs.begin[along] = begin;
  attrs.step[along] = step;
  part.set(along, count);
  const Value y = impl_->add_value(layer, impl_->tensor(x).dtype, part);
  impl_->append(ir::OpKind::slice, ir::Phase::forward, layer, {x}, {y}, attrs);
  return y;
}

Value NetworkBuilder::flip(Value x, std::int64_t axis, const std::string& name) {
  const std::string layer = name.empty() ? impl_->layer_name(name, x, "flip") : name;
  const std::int64_t extent =
      impl_->shape(x)[static_cast<std::size_t>(counted_axis(layer, impl_->shape(x), axis))];
  return slice(x, axis, extent - 1, extent, -1, name);
}

Value NetworkBuilder::roll(Value x, std::int64_t axis, std::int64_t shift, const std::string& name) {
  const std::string layer = name.empty() ? impl_->layer_name(name, x, "roll") : name;
  const std::int64_t along = counted_axis(layer, impl_->shape(x), axis);
  const std::int64_t extent = impl_->shape(x)[static_cast<std::size_t>(along)];
  const std::int64_t moved = ((shift % extent) + extent) % extent;
  if (moved == 0) return x;
  const Value end = slice(x, along, extent - moved, moved);
  return concat({end, slice(x, along, 0, extent - moved)}, along, name);
}

Value NetworkBuilder::gather(Value x, Value indices, std::int64_t axis, const std::string& name) {
  const std::string layer = impl_->layer_name(name, x, "gather");
  const ir::AxisAttrs attrs{counted_axis(layer, impl_->shape(x), axis)};
  const ir::Shape out = impl_->infer(ir::OpKind::gather, layer, {x, indices}, attrs)[0];
  const Value y = impl_->add_value(layer, impl_->tensor(x).dtype, out);
  impl_->append(ir::OpKind::gather, ir::Phase::forward, layer, {x, indices}, {y}, attrs);
  return y;
}

Value NetworkBuilder::stack(const std::vector<Value>& values, std::int64_t axis, const std::string& name) {
  if (values.empty()) throw UserError(fmt::format("stack {} needs at least one input", name));
  std::vector<std::int64_t> dims = impl_->shape(values[0]).dims();
  const auto rank = static_cast<std::int64_t>(dims.size());
  const std::int64_t place = axis < 0 ? axis + rank + 1 : axis;
  if (place < 0 || place > rank)
    throw UserError(fmt::format("stack {}: axis {} is not within {} and one more", name, axis, rank));
  dims.insert(dims.begin() + place, 1);
  std::vector<Value> parts;
  for (const Value value : values) parts.push_back(reshape(value, dims));
  return concat(parts, place, name);
}

}  // namespace penstock
