#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "models/builder.h"

namespace penstock::models {

namespace {

void check_axis(const std::string& layer, const ir::Shape& shape, std::int64_t axis) {
  if (axis < 0 || axis >= static_cast<std::int64_t>(shape.rank())) {
    throw UserError(fmt::format("layer {}: {} has no axis {}", layer, shape.to_string(), axis));
  }
}

}  // namespace

Value Builder::concat(const std::vector<Value>& values, std::int64_t axis, const std::string& name) {
  if (values.empty()) throw UserError("concat needs at least one input");
  const std::string layer = layer_name(name, values.back(), "concat");
  ir::Shape out = shape(values[0]);
  check_axis(layer, out, axis);
  const auto along = static_cast<std::size_t>(axis);
  out[along] = 0;
  for (const Value value : values) {
    ir::Shape part = shape(value);
    const std::int64_t extent = part.rank() == out.rank() ? part[along] : 0;
    if (extent > 0) part[along] = out[along];
    if (part != out) {
      throw UserError(fmt::format("layer {}: cannot concatenate {} and {} along axis {}", layer,
                                  shape(values[0]).to_string(), shape(value).to_string(), axis));
    }
    out[along] += extent;
  }
  return make(ir::OpKind::concat, layer, values, out, ir::AxisAttrs{axis});
}

std::vector<Value> Builder::split(Value x, const std::vector<std::int64_t>& sizes, std::int64_t axis,
                                  const std::string& name) {
  const std::string layer = layer_name(name, x, "split");
  ir::Shape part = shape(x);
  check_axis(layer, part, axis);
  const auto along = static_cast<std::size_t>(axis);
  if (std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != part[along]) {
    throw UserError(
        fmt::format("layer {}: the sizes do not add up to extent {} of axis {}", layer, part[along], axis));
  }
  std::vector<Value> parts;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    part[along] = sizes[i];
    parts.push_back(add_output(fmt::format("{}.{}", layer, i), ir::DType::f32, part, ir::Role::activation));
  }
  graph_.add_op({ir::OpKind::split, ir::Phase::forward, layer, {x}, parts, ir::AxisAttrs{axis}});
  return parts;
}

Value Builder::padded(ir::OpKind kind, const char* verb, Value x, const ir::PadAttrs& attrs,
                      const std::string& name) {
  const std::string layer = layer_name(name, x, verb);
  ir::Shape out = shape(x);
  if (attrs.begin.size() != out.rank() || attrs.end.size() != out.rank()) {
    throw UserError(fmt::format("layer {}: {} needs one begin and one end for each axis of {}", layer, verb,
                                out.to_string()));
  }
  for (std::size_t i = 0; i < out.rank(); ++i) {
    if (attrs.begin[i] < 0 || attrs.end[i] < 0)
      throw UserError(fmt::format("layer {}: {} by less than 0", layer, verb));
    const std::int64_t change = attrs.begin[i] + attrs.end[i];
    out[i] += kind == ir::OpKind::pad ? change : -change;
  }
  return make(kind, layer, {x}, out, attrs);
}

Value Builder::pad(Value x, const ir::PadAttrs& attrs, const std::string& name) {
  return padded(ir::OpKind::pad, "pad", x, attrs, name);
}

Value Builder::crop(Value x, const ir::PadAttrs& attrs, const std::string& name) {
  return padded(ir::OpKind::crop, "crop", x, attrs, name);
}

Value Builder::reshape(Value x, ir::Shape to, const std::string& name) {
  const std::string layer = layer_name(name, x, "reshape");
  if (to.elements() != shape(x).elements()) {
    throw UserError(fmt::format("layer {}: {} and {} differ in their number of elements", layer,
                                shape(x).to_string(), to.to_string()));
  }
  return make(ir::OpKind::reshape, layer, {x}, std::move(to));
}

Value Builder::flatten(Value x, const std::string& name) {
  const ir::Shape in = shape(x);
  return reshape(x, {in[0], in.elements(1, in.rank())}, name);
}

Value Builder::transpose(Value x, const std::vector<std::int64_t>& order, const std::string& name) {
  const std::string layer = layer_name(name, x, "transpose");
  const ir::Shape in = shape(x);
  std::vector<std::int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> axes(in.rank());
  std::iota(axes.begin(), axes.end(), 0);
  if (sorted != axes) {
    throw UserError(fmt::format("layer {}: the order must name each of the {} axes once", layer, in.rank()));
  }
  ir::Shape out = in;
  for (std::size_t i = 0; i < order.size(); ++i) out[i] = in[static_cast<std::size_t>(order[i])];
  return make(ir::OpKind::transpose, layer, {x}, out, ir::TransposeAttrs{order});
}

}  // namespace penstock::models
