#include <fmt/format.h>

#include <algorithm>

#include "models/builder_impl.h"
#include "models/sliding.h"

namespace penstock {

namespace {

/// Adaptive pooling along one axis: value i is the mean of [begin[i], end[i]).
struct Bins {
  Extents begin, end;

  /// Whether a window of one length and one stride makes them all.
  bool uniform() const {
    for (std::size_t i = 1; i < begin.size(); ++i) {
      if (begin[i] - begin[i - 1] != stride() || end[i] - begin[i] != length()) return false;
    }
    return stride() > 0;
  }
  std::int64_t length() const { return end[0] - begin[0]; }
  std::int64_t stride() const { return begin.size() > 1 ? begin[1] - begin[0] : length(); }
};

Bins adaptive_bins(std::int64_t extent, std::int64_t size) {
  Bins bins;
  for (std::int64_t i = 0; i < size; ++i) {
    bins.begin.push_back(i * extent / size);
    bins.end.push_back(((i + 1) * extent + size - 1) / size);
  }
  return bins;
}

ir::PoolAttrs pool_attrs(const std::string& layer, const char* kind, const ir::Shape& x,
                         const PoolOptions& options) {
  ir::PoolAttrs attrs;
  attrs.kernel = spatial(layer, "kernel", x, options.kernel, 1);
  attrs.stride = spatial(layer, "stride", x, options.stride, 1);
  attrs.padding_begin = spatial(layer, "padding", x, options.padding, 0);
  attrs.padding_end = options.padding_end.empty() ? attrs.padding_begin
                                                  : spatial(layer, "padding", x, options.padding_end, 0);
  attrs.count_include_pad = options.count_include_pad;
  const Extents ones(attrs.kernel.size(), 1);
  check_fits({layer, kind, attrs.kernel, attrs.stride, attrs.padding_begin, attrs.padding_end, ones}, x);
  return attrs;
}

}  // namespace

Value NetworkBuilder::Impl::pool(ir::OpKind kind, const std::string& layer, Value x,
                                 const PoolOptions& options) {
  const bool is_max = kind == ir::OpKind::max_pool;
  const ir::PoolAttrs attrs = pool_attrs(layer, is_max ? "max pool" : "average pool", shape(x), options);
  if (!is_max) return make(kind, layer, {x}, attrs);
  const std::vector<ir::Shape> out = infer(kind, layer, {x}, attrs);
  const Value y = add_value(layer, ir::DType::f32, out[0]);
  const Value indices = add_value(layer + ".indices", ir::DType::s32, out[1], ir::Role::workspace);
  append(kind, ir::Phase::forward, layer, {x}, {y, indices}, attrs);
  return y;
}

Value NetworkBuilder::Impl::adaptive_axis(Value x, std::size_t axis, std::int64_t size,
                                          const std::string& layer) {
  const ir::Shape in = shape(x);
  const Bins bins = adaptive_bins(in[axis], size);
  std::vector<Value> means;
  for (std::size_t i = 0; i < bins.begin.size(); ++i) {
    ir::PadAttrs cut{Extents(in.rank(), 0), Extents(in.rank(), 0)};
    cut.begin[axis] = bins.begin[i];
    cut.end[axis] = in[axis] - bins.end[i];
    const Value part = make(ir::OpKind::crop, fmt::format("{}.{}.crop", layer, i), {x}, cut);
    PoolOptions window;
    window.kernel = Extents(in.rank() - 2, 1);
    window.kernel[axis - 2] = bins.end[i] - bins.begin[i];
    window.stride = {1};
    means.push_back(pool(ir::OpKind::avg_pool, fmt::format("{}.{}", layer, i), part, window));
  }
  return make(ir::OpKind::concat, layer, means, ir::AxisAttrs{static_cast<std::int64_t>(axis)});
}

Value NetworkBuilder::max_pool(Value x, const PoolOptions& options, const std::string& name) {
  return impl_->pool(ir::OpKind::max_pool, impl_->layer_name(name, x, "max_pool"), x, options);
}

Value NetworkBuilder::avg_pool(Value x, const PoolOptions& options, const std::string& name) {
  return impl_->pool(ir::OpKind::avg_pool, impl_->layer_name(name, x, "avg_pool"), x, options);
}

Value NetworkBuilder::global_avg_pool(Value x, const std::string& name) {
  return impl_->make(ir::OpKind::global_avg_pool, impl_->layer_name(name, x, "global_avg_pool"), {x});
}

Value NetworkBuilder::adaptive_avg_pool(Value x, std::int64_t size, const std::string& name) {
  const std::string layer = impl_->layer_name(name, x, "adaptive_avg_pool");
  const Extents target = spatial(layer, "size", impl_->shape(x), {size}, 1);
  const Extents extents = extents_of(impl_->shape(x));
  if (extents == target) return x;

  PoolOptions window;
  window.kernel.clear();
  window.stride.clear();
  Extents factor;
  for (const std::int64_t extent : extents) {
    const Bins bins = adaptive_bins(extent, size);
    if (bins.uniform()) {
      window.kernel.push_back(bins.length());
      window.stride.push_back(bins.stride());
    }
    if (size % extent == 0) factor.push_back(size / extent);
  }
  if (window.kernel.size() == extents.size())
    return impl_->pool(ir::OpKind::avg_pool, layer + ".pool", x, window);
  if (factor.size() == extents.size())
    return impl_->make(ir::OpKind::upsample, layer + ".repeat", {x}, ir::UpsampleAttrs{factor, false});
  for (std::size_t axis = 2; axis < shape(x).size(); ++axis) {
    x = impl_->adaptive_axis(x, axis, size, fmt::format("{}.axis{}", layer, axis));
  }
  return x;
}

Value NetworkBuilder::upsample(Value x, const Extents& factor, bool bilinear, const std::string& name) {
  const std::string layer = impl_->layer_name(name, x, "upsample");
  return impl_->make(ir::OpKind::upsample, layer, {x},
                     ir::UpsampleAttrs{spatial(layer, "factor", impl_->shape(x), factor, 1), bilinear});
}

}  // namespace penstock
