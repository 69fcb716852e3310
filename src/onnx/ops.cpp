#include "onnx/ops.h"

#include <algorithm>

namespace penstock::onnx {
namespace {

const OpTable& all_ops() {
  static const OpTable table = [] {
    OpTable all;
    for (const auto& family :
         {product_ops, norm_ops, function_ops, pointwise_ops, reduce_ops, pool_ops, resize_ops, shape_ops,
          index_ops, einsum_ops, loss_ops, recurrent_ops, attention_ops})
      all.insert(family().begin(), family().end());
    return all;
  }();
  return table;
}

}  // namespace

OpFunction find_op(const std::string& op_type) {
  const auto found = all_ops().find(op_type);
  return found == all_ops().end() ? nullptr : found->second;
}

std::vector<std::string> supported_ops() {
  std::vector<std::string> names;
  for (const auto& [name, function] : all_ops()) names.push_back(name);
  return names;
}

Extents broadcast_dims(const Importer& at, const Extents& a, const Extents& b) {
  Extents dims(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) at.fail("has inputs that do not broadcast");
    dims[dims.size() - 1 - i] = x == 1 ? y : x;
  }
  return dims;
}

Value apply(Importer& at, const char* function, const std::vector<Value>& inputs,
            const std::vector<float>& parameters) {
  return at.net().apply(function, inputs, parameters);
}

void check_precision(Importer& at) {
  if (at.type(0) == ElementType::bf16 && !at.trains())
    at.fail("is to be computed in bfloat16, which is not supported: float32 would give other results");
}

std::int64_t product_of(const Extents& dims, std::size_t begin, std::size_t end) {
  std::int64_t product = 1;
  for (std::size_t i = begin; i < end; ++i) product *= dims[i];
  return product;
}

std::vector<std::int64_t> axes_of(Importer& at) {
  if (at.node().find("axes") != nullptr) return at.integers("axes");
  return at.has(1) ? at.integers(std::size_t{1}) : std::vector<std::int64_t>{};
}

Value times_table(Importer& at, Value x, std::size_t axis, std::int64_t outputs,
                  const std::vector<double>& matrix) {
  constexpr std::size_t kLargest = 1 << 22;
  if (matrix.size() > kLargest) at.fail("is too large along an axis");
  NetworkBuilder& net = at.net();
  Extents dims = net.shape(x);
  const std::int64_t extent = dims[axis];
  const std::int64_t outer = product_of(dims, 0, axis), inner = product_of(dims, axis + 1, dims.size());
  const Value table = at.table({extent, outputs}, matrix);
  dims[axis] = outputs;
  if (inner == 1) return net.reshape(net.matmul(net.reshape(x, {outer, extent}), table), dims);
  const Value turned = net.transpose(net.reshape(x, {outer, extent, inner}), {0, 2, 1});
  const Value y = net.matmul(net.reshape(turned, {outer * inner, extent}), table);
  return net.reshape(net.transpose(net.reshape(y, {outer, inner, outputs}), {0, 2, 1}), dims);
}

Value picked(Importer& at, Value x, std::size_t axis, const std::vector<std::int64_t>& places) {
  if (places.empty()) at.fail("would give an empty tensor, which is not supported");
  const auto step = places.size() > 1 ? places[1] - places[0] : 1;
  bool even = step != 0;
  for (std::size_t i = 1; i < places.size(); ++i) even &= places[i] - places[i - 1] == step;
  const auto count = static_cast<std::int64_t>(places.size());
  const auto along = static_cast<std::int64_t>(axis);
  if (even && places[0] == 0 && step == 1 && count == at.net().shape(x)[axis]) return x;
  if (even) return at.net().slice(x, along, places[0], count, step);
  return at.net().gather(x, at.index_table({count}, places), along);
}

Value one_hot(Importer& at, Value index, std::size_t axis, std::int64_t extent) {
  constexpr std::int64_t kLargest = 1 << 26;
  const Extents& dims = at.net().shape(index);
  if (extent > kLargest / product_of(dims)) at.fail("picks from too many elements");
  std::vector<double> places;
  for (std::int64_t i = 0; i < extent; ++i) places.push_back(static_cast<double>(i));
  Extents along(dims.size() - axis, 1);
  along[0] = extent;
  return apply(at, "equal", {index, at.table(along, places)});
}

Windowing windowing(Importer& at, const Extents& x, const Extents& kernel) {
  if (x.size() < 3 || x.size() > 5) at.fail("needs an input [N, C, one to three extents]");
  const std::size_t axes = x.size() - 2;
  const auto filled = [&](const char* name, std::int64_t usual, std::size_t count) {
    std::vector<std::int64_t> given = at.integers(name);
    if (given.empty()) given.assign(count, usual);
    if (given.size() != count) at.fail(std::string("has another number of ") + name + " than spatial axes");
    return given;
  };
  Windowing w;
  w.kernel = kernel.empty() ? filled("kernel_shape", 1, axes) : kernel;
  if (w.kernel.size() != axes) at.fail("has another number of kernel extents than spatial axes");
  w.stride = filled("strides", 1, axes);
  w.dilation = filled("dilations", 1, axes);
  const std::vector<std::int64_t> pads = filled("pads", 0, 2 * axes);
  w.padding_begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(axes));
  w.padding_end.assign(pads.begin() + static_cast<std::ptrdiff_t>(axes), pads.end());
  const std::string rule = at.text("auto_pad", "NOTSET");
  if (rule == "SAME_UPPER" || rule == "SAME_LOWER") {
    for (std::size_t i = 0; i < axes; ++i) {
      if (w.stride[i] < 1) at.fail("has a stride below 1");
      const std::int64_t outputs = (x[i + 2] + w.stride[i] - 1) / w.stride[i];
      const std::int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
      const std::int64_t all = std::max<std::int64_t>(0, (outputs - 1) * w.stride[i] + reach - x[i + 2]);
      w.padding_begin[i] = rule == "SAME_UPPER" ? all / 2 : all - all / 2;
      w.padding_end[i] = all - w.padding_begin[i];
    }
  } else if (rule != "NOTSET" && rule != "VALID") {
    at.fail("has auto_pad " + rule + ", which is not known");
  }
  return w;
}

}  // namespace penstock::onnx
