#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "models/builder_impl.h"

namespace penstock {

namespace {

/// `to` with its -1, if there is one, replaced by what is left for it.
ir::Shape filled_in(const std::string& layer, const ir::Shape& from, Extents to) {
  const auto open = std::find(to.begin(), to.end(), -1);
  if (open != to.end()) {
    std::int64_t others = 1;
    for (auto extent = to.begin(); extent != to.end(); ++extent) {
      // More than there are elements cannot divide them; stopping here keeps the product from overflowing.
      if (extent != open && *extent >= 1 && others <= from.elements()) others *= *extent;
    }
    if (others > 0 && from.elements() % others == 0) *open = from.elements() / others;
  }
  ir::Shape shape(std::move(to));
  check_size(layer, shape);
  if (shape.elements() != from.elements()) {
    throw UserError(fmt::format("layer {}: {} and {} differ in their number of elements", layer,
                                from.to_string(), shape.to_string()));
  }
  return shape;
}

}  // namespace

Value NetworkBuilder::concat(const std::vector<Value>& values, std::int64_t axis, const std::string& name) {
  if (values.empty()) throw UserError(fmt::format("concat {} needs at least one input", name));
  return impl_->make(ir::OpKind::concat, impl_->layer_name(name, values.back(), "concat"), values,
                     ir::AxisAttrs{axis});
}

std::vector<Value> NetworkBuilder::split(Value x, const Extents& sizes, std::int64_t axis,
                                         const std::string& name) {
  const std::string layer = impl_->layer_name(name, x, "split");
  ir::Shape part = impl_->shape(x);
  if (axis < 0 || axis >= static_cast<std::int64_t>(part.rank())) {
    throw UserError(fmt::format("layer {}: {} has no axis {}", layer, part.to_string(), axis));
  }
  const auto along = static_cast<std::size_t>(axis);
  if (std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != part[along]) {
    throw UserError(
        fmt::format("layer {}: the sizes do not add up to extent {} of axis {}", layer, part[along], axis));
  }
  const ir::DType dtype = impl_->tensor(x).dtype;
  std::vector<Value> parts;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    part.set(along, sizes[i]);
    parts.push_back(impl_->add_value(fmt::format("{}.{}", layer, i), dtype, part));
  }
  impl_->append(ir::OpKind::split, ir::Phase::forward, layer, {x}, parts, ir::AxisAttrs{axis});
  return parts;
}

Value NetworkBuilder::pad(Value x, const Extents& begin, const Extents& end, float value,
                          const std::string& name) {
  return impl_->make(ir::OpKind::pad, impl_->layer_name(name, x, "pad"), {x},
                     ir::PadAttrs{begin, end, value});
}

Value NetworkBuilder::crop(Value x, const Extents& begin, const Extents& end, const std::string& name) {
  return impl_->make(ir::OpKind::crop, impl_->layer_name(name, x, "crop"), {x}, ir::PadAttrs{begin, end});
}

Value NetworkBuilder::reshape(Value x, const Extents& shape, const std::string& name) {
  const std::string layer = impl_->layer_name(name, x, "reshape");
  const Value y = impl_->add_value(layer, impl_->tensor(x).dtype, filled_in(layer, impl_->shape(x), shape));
  impl_->append(ir::OpKind::reshape, ir::Phase::forward, layer, {x}, {y});
  return y;
}

Value NetworkBuilder::flatten(Value x, const std::string& name) {
  const ir::Shape& in = impl_->shape(x);
  if (in.rank() < 1) throw UserError("flatten needs an input [N, ...]");
  return reshape(x, {in[0], in.elements(1, in.rank())}, name);
}

Value NetworkBuilder::transpose(Value x, const Extents& order, const std::string& name) {
  return impl_->make(ir::OpKind::transpose, impl_->layer_name(name, x, "transpose"), {x},
                     ir::TransposeAttrs{order});
}

}  // namespace penstock
