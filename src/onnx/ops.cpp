#include "onnx/ops.h"

#include <algorithm>

namespace penstock::onnx {
namespace {

const OpTable& all_ops() {
  static const OpTable table = [] {
    OpTable all;
    for (const auto& family : {product_ops, norm_ops, pointwise_ops, pool_ops, shape_ops})
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
