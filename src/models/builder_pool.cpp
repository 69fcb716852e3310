#include <fmt/format.h>

#include <algorithm>

#include "models/builder.h"
#include "models/window.h"

namespace penstock::models {

namespace {

/// Adaptive pooling along one axis: value i is the mean of [begin[i], end[i]).
struct Bins {
  std::vector<std::int64_t> begin, end;

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

}  // namespace

ir::PoolAttrs Builder::pool_attrs(const std::string& layer, const char* kind, Value x,
                                  const PoolOptions& options) const {
  ir::PoolAttrs attrs;
  attrs.kernel = spatial(layer, "kernel", shape(x), options.kernel, 1);
  attrs.stride = spatial(layer, "stride", shape(x), options.stride, 1);
  attrs.padding_begin = attrs.padding_end = spatial(layer, "padding", shape(x), options.padding, 0);
  attrs.count_include_pad = options.count_include_pad;
  const Extents ones(attrs.kernel.size(), 1);
  check_fits({layer, kind, attrs.kernel, attrs.stride, attrs.padding_begin, ones}, shape(x));
  return attrs;
}

Value Builder::max_pool(Value x, const PoolOptions& options, const std::string& name) {
  const std::string layer = layer_name(name, x, "max_pool");
  ir::PoolAttrs attrs = pool_attrs(layer, "max pool", x, options);
  const std::vector<ir::Shape> out = infer(ir::OpKind::max_pool, layer, {x}, attrs);
  const Value y = add_output(layer, ir::DType::f32, out[0], ir::Role::activation);
  const Value indices = add_output(layer + ".indices", ir::DType::s32, out[1], ir::Role::workspace);
  graph_.add_op({ir::OpKind::max_pool, ir::Phase::forward, layer, {x}, {y, indices}, std::move(attrs)});
  return y;
}

Value Builder::avg_pool(Value x, const PoolOptions& options, const std::string& name) {
  const std::string layer = layer_name(name, x, "avg_pool");
  return make(ir::OpKind::avg_pool, layer, {x}, pool_attrs(layer, "average pool", x, options));
}

Value Builder::global_avg_pool(Value x, const std::string& name) {
  return make(ir::OpKind::global_avg_pool, layer_name(name, x, "global_avg_pool"), {x});
}

Value Builder::adaptive_avg_pool(Value x, std::int64_t size, const std::string& name) {
  const std::string layer = layer_name(name, x, "adaptive_avg_pool");
  const Extents target = spatial(layer, "size", shape(x), {size}, 1);
  const Extents extents = extents_of(shape(x));
  if (extents == target) return x;

  PoolOptions window{{}, {}, {0}};
  Extents factor;
  for (const std::int64_t extent : extents) {
    const Bins bins = adaptive_bins(extent, size);
    if (bins.uniform()) {
      window.kernel.push_back(bins.length());
      window.stride.push_back(bins.stride());
    }
    if (size % extent == 0) factor.push_back(size / extent);
  }
  if (window.kernel.size() == extents.size()) return avg_pool(x, window, layer + ".pool");
  if (factor.size() == extents.size()) return upsample(x, factor, false, layer + ".repeat");
  for (std::size_t axis = 2; axis < shape(x).rank(); ++axis) {
    x = adaptive_axis(x, axis, size, fmt::format("{}.axis{}", layer, axis));
  }
  return x;
}

Value Builder::adaptive_axis(Value x, std::size_t axis, std::int64_t size, const std::string& name) {
  const ir::Shape in = shape(x);
  const Bins bins = adaptive_bins(in[axis], size);
  std::vector<Value> means;
  for (std::size_t i = 0; i < bins.begin.size(); ++i) {
    ir::PadAttrs cut{Extents(in.rank(), 0), Extents(in.rank(), 0)};
    cut.begin[axis] = bins.begin[i];
    cut.end[axis] = in[axis] - bins.end[i];
    const Value part = crop(x, cut, fmt::format("{}.{}.crop", name, i));
    PoolOptions window{Extents(in.rank() - 2, 1), {1}, {0}};
    window.kernel[axis - 2] = bins.end[i] - bins.begin[i];
    means.push_back(avg_pool(part, window, fmt::format("{}.{}", name, i)));
  }
  return concat(means, static_cast<std::int64_t>(axis), name);
}

Value Builder::upsample(Value x, const Extents& factor, bool bilinear, const std::string& name) {
  const std::string layer = layer_name(name, x, "upsample");
  return make(ir::OpKind::upsample, layer, {x},
              ir::UpsampleAttrs{spatial(layer, "factor", shape(x), factor, 1), bilinear});
}

}  // namespace penstock::models
