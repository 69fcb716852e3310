#include <algorithm>
#include <cmath>

#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

/// A pooling and by how much its windows reach beyond the padding that is meant (ceil_mode).
struct Pool {
  PoolOptions options;
  Extents meant_end;  ///< of the padding at the end
  bool reaches_out = false;
};

Pool pool_of(Importer& at) {
  const Extents x = at.shape(0);
  const Windowing w = windowing(at, x, {});
  for (const std::int64_t d : w.dilation) {
    if (d != 1) at.fail("has dilations, which are not supported");
  }
  Pool pool;
  pool.options.kernel = w.kernel;
  pool.options.stride = w.stride;
  pool.options.padding = w.padding_begin;
  pool.options.padding_end = w.padding_end;
  pool.options.count_include_pad = at.integer("count_include_pad", 0) != 0;
  pool.meant_end = w.padding_end;
  if (at.integer("ceil_mode", 0) == 0) return pool;
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    const std::int64_t extent = x[i + 2], begin = w.padding_begin[i], stride = w.stride[i];
    if (stride < 1) at.fail("has a stride below 1");
    const std::int64_t room = extent + begin + w.padding_end[i] - w.kernel[i];
    if (room < 0) continue;
    std::int64_t windows = (room + stride - 1) / stride + 1;
    // A window that begins beyond the input is left out.
    if ((windows - 1) * stride >= extent + begin) --windows;
    const std::int64_t need = (windows - 1) * stride + w.kernel[i] - extent - begin;
    if (need <= w.padding_end[i]) continue;
    pool.options.padding_end[i] = need;
    pool.reaches_out = true;
  }
  return pool;
}

void max_pool(Importer& at) {
  if (at.wants(1)) at.fail("gives indices, which is not supported");
  if (at.net().dtype(at.value(0)) != DType::f32) at.fail("pools integers, which is not supported");
  at.set(0, at.net().max_pool(at.value(0), pool_of(at).options, at.layer()));
}

/// How many elements of the input and its padding each window has of all that it covers.
std::vector<double> shares(const Extents& x, const Pool& pool, std::size_t axis, std::int64_t windows) {
  std::vector<double> counts;
  for (std::int64_t i = 0; i < windows; ++i) {
    const std::int64_t begin = i * pool.options.stride[axis] - pool.options.padding[axis];
    const std::int64_t end = std::min(begin + pool.options.kernel[axis], x[axis + 2] + pool.meant_end[axis]);
    counts.push_back(static_cast<double>(end - begin) / static_cast<double>(pool.options.kernel[axis]));
  }
  return counts;
}

Value average(Importer& at, Value x, const Pool& pool, const std::string& layer) {
  Value y = at.net().avg_pool(x, pool.options, layer);
  if (!pool.reaches_out || !pool.options.count_include_pad) return y;
  // What lies beyond the padding does not count.
  const Extents in = at.net().shape(x), out = at.net().shape(y);
  for (std::size_t axis = 0; axis + 2 < out.size(); ++axis) {
    Extents along(out.size() - axis - 2, 1);
    along[0] = out[axis + 2];
    y = apply(at, "div", {y, at.table(along, shares(in, pool, axis, out[axis + 2]))});
  }
  return y;
}

void avg_pool(Importer& at) {
  const Pool pool = pool_of(at);
  at.set(0, average(at, at.real_value(0), pool, at.layer()));
}

/// (sum of |x|^p) ^ (1/p)
Value root_of(Importer& at, Value sums, std::int64_t p) {
  return p == 1 ? sums : apply(at, "pow_scalar", {sums}, {1.0F / static_cast<float>(p)});
}

Value power_of(Importer& at, Value x, std::int64_t p) {
  const Value size = apply(at, "abs", {x});
  return p == 1 ? size : apply(at, "pow_scalar", {size}, {static_cast<float>(p)});
}

void lp_pool(Importer& at) {
  const std::int64_t p = at.integer("p", 2);
  if (p < 1) at.fail("has no power p");
  Pool pool = pool_of(at);
  pool.options.count_include_pad = true;
  pool.reaches_out = false;
  const Value means = average(at, power_of(at, at.real_value(0), p), pool, at.layer());
  const auto count = static_cast<float>(product_of(pool.options.kernel));
  at.set(0, root_of(at, apply(at, "mul_scalar", {means}, {count}), p));
}

Extents spatial_axes(Importer& at) {
  const std::size_t rank = at.shape(0).size();
  if (rank < 3) at.fail("needs an input [N, C, ...]");
  Extents axes;
  for (std::size_t i = 2; i < rank; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

void global_avg_pool(Importer& at) {
  at.set(0, at.net().global_avg_pool(at.value(0), at.layer()));
}

void global_max_pool(Importer& at) {
  at.set(0, at.net().reduce(Reduction::largest, at.value(0), spatial_axes(at), true, at.layer()));
}

void global_lp_pool(Importer& at) {
  const std::int64_t p = at.integer("p", 2);
  if (p < 1) at.fail("has no power p");
  const Value powers = power_of(at, at.value(0), p);
  at.set(0, root_of(at, at.net().reduce(Reduction::sum, powers, spatial_axes(at), true, at.layer()), p));
}

}  // namespace

const OpTable& pool_ops() {
  static const OpTable table{{"MaxPool", max_pool},
                             {"AveragePool", avg_pool},
                             {"LpPool", lp_pool},
                             {"GlobalAveragePool", global_avg_pool},
                             {"GlobalMaxPool", global_max_pool},
                             {"GlobalLpPool", global_lp_pool}};
  return table;
}

}  // namespace penstock::onnx
