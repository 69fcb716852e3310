#include <cmath>

#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

PoolOptions pool_options(Importer& at) {
  const Windowing w = windowing(at, at.shape(0), {});
  for (const std::int64_t d : w.dilation) {
    if (d != 1) at.fail("has dilations, which are not supported");
  }
  if (at.integer("ceil_mode", 0) != 0) at.fail("has ceil_mode, which is not supported");
  PoolOptions options;
  options.kernel = w.kernel;
  options.stride = w.stride;
  options.padding = w.padding_begin;
  options.padding_end = w.padding_end;
  options.count_include_pad = at.integer("count_include_pad", 0) != 0;
  return options;
}

void max_pool(Importer& at) {
  if (at.node().outputs.size() > 1 && !at.node().outputs[1].empty())
    at.fail("gives indices, which is not supported");
  at.set(0, at.net().max_pool(at.value(0), pool_options(at), at.layer()));
}

void avg_pool(Importer& at) {
  at.set(0, at.net().avg_pool(at.value(0), pool_options(at), at.layer()));
}

void global_avg_pool(Importer& at) {
  at.set(0, at.net().global_avg_pool(at.value(0), at.layer()));
}

/// Resize and Upsample by whole factors.
void resize(Importer& at) {
  const Extents x = at.shape(0);
  if (x.size() < 3) at.fail("needs an input [N, C, ...]");
  const bool upsample = at.node().op_type == "Upsample";
  const std::size_t scales_input = upsample ? 1 : 2;
  std::vector<double> scales;
  if (at.has(scales_input) && at.constant(scales_input).size() > 0) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(at.constant(scales_input).size()); ++i)
      scales.push_back(at.constant(scales_input).number(i));
  } else if (!upsample && at.has(3)) {
    const std::vector<std::int64_t> sizes = at.integers(std::size_t{3});
    for (std::size_t i = 0; i < sizes.size() && i < x.size(); ++i)
      scales.push_back(static_cast<double>(sizes[i]) / static_cast<double>(x[i]));
  }
  if (scales.size() != x.size() || scales[0] != 1 || scales[1] != 1)
    at.fail("resizes other axes than the spatial ones, which is not supported");
  Extents factor;
  for (std::size_t i = 2; i < scales.size(); ++i) {
    const double whole = std::round(scales[i]);
    if (whole < 1 || whole > 1e6 || std::fabs(scales[i] - whole) > 1e-6)
      at.fail("resizes by a factor that is not whole, which is not supported");
    factor.push_back(static_cast<std::int64_t>(whole));
  }
  const std::string mode = at.text("mode", "nearest");
  const std::string rule = at.text("coordinate_transformation_mode", upsample ? "asymmetric" : "half_pixel");
  // By whole factors, nearest gives the same under all of these rules but align_corners.
  const bool fits = mode == "nearest"
                        ? rule != "align_corners" && rule != "tf_crop_and_resize"
                        : mode == "linear" && (rule == "half_pixel" || rule == "pytorch_half_pixel");
  if (!fits) at.fail("resizes by mode " + mode + " with " + rule + ", which is not supported");
  at.set(0, at.net().upsample(at.value(0), factor, mode == "linear", at.layer()));
}

}  // namespace

const OpTable& pool_ops() {
  static const OpTable table{{"MaxPool", max_pool},
                             {"AveragePool", avg_pool},
                             {"GlobalAveragePool", global_avg_pool},
                             {"Resize", resize},
                             {"Upsample", resize}};
  return table;
}

}  // namespace penstock::onnx
