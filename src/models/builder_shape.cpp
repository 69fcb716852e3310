#include <fmt/format.h>

#include <numeric>

#include "models/builder.h"

namespace penstock::models {

Value Builder::concat(const std::vector<Value>& values, std::int64_t axis, const std::string& name) {
  if (values.empty()) throw UserError(fmt::format("concat {} needs at least one input", name));
  return make(ir::OpKind::concat, layer_name(name, values.back(), "concat"), values, ir::AxisAttrs{axis});
}

std::vector<Value> Builder::split(Value x, const std::vector<std::int64_t>& sizes, std::int64_t axis,
                                  const std::string& name) {
  const std::string layer = layer_name(name, x, "split");
  ir::Shape part = shape(x);
  if (axis < 0 || axis >= static_cast<std::int64_t>(part.rank())) {
    throw UserError(fmt::format("layer {}: {} has no axis {}", layer, part.to_string(), axis));
  }
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

Value Builder::pad(Value x, const ir::PadAttrs& attrs, const std::string& name) {
  return make(ir::OpKind::pad, layer_name(name, x, "pad"), {x}, attrs);
}

Value Builder::crop(Value x, const ir::PadAttrs& attrs, const std::string& name) {
  return make(ir::OpKind::crop, layer_name(name, x, "crop"), {x}, attrs);
}

Value Builder::reshape(Value x, ir::Shape to, const std::string& name) {
  const std::string layer = layer_name(name, x, "reshape");
  if (to.elements() != shape(x).elements()) {
    throw UserError(fmt::format("layer {}: {} and {} differ in their number of elements", layer,
                                shape(x).to_string(), to.to_string()));
  }
  const Value y = add_output(layer, ir::DType::f32, std::move(to), ir::Role::activation);
  graph_.add_op({ir::OpKind::reshape, ir::Phase::forward, layer, {x}, {y}, {}});
  return y;
}

Value Builder::flatten(Value x, const std::string& name) {
  const ir::Shape in = shape(x);
  return reshape(x, {in[0], in.elements(1, in.rank())}, name);
}

Value Builder::transpose(Value x, const std::vector<std::int64_t>& order, const std::string& name) {
  return make(ir::OpKind::transpose, layer_name(name, x, "transpose"), {x}, ir::TransposeAttrs{order});
}

}  // namespace penstock::models
