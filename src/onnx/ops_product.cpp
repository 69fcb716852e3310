#include <algorithm>

#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

ConvOptions conv_options(Importer& at, const Extents& weight) {
  if (weight.size() < 3) at.fail("has weights that are no convolution's");
  const Windowing w = windowing(at, at.shape(0), {weight.begin() + 2, weight.end()});
  ConvOptions options;
  options.stride = w.stride;
  options.dilation = w.dilation;
  options.padding = w.padding_begin;
  options.padding_end = w.padding_end;
  options.groups = at.integer("group", 1);
  return options;
}

Value bias(Importer& at) {
  return at.has(2) ? at.value(2) : Value{};
}

void conv(Importer& at) {
  const ConvOptions options = conv_options(at, at.shape(1));
  at.set(0, at.net().conv(at.value(0), at.value(1), bias(at), options, at.layer()));
}

/// Paddings follow from the extents that the result is to have, if it says so.
void conv_transpose(Importer& at) {
  const Extents x = at.shape(0);
  const std::string rule = at.text("auto_pad", "NOTSET");
  const bool same = rule == "SAME_UPPER" || rule == "SAME_LOWER";
  ConvOptions options = conv_options(at, at.shape(1));
  const std::vector<std::int64_t> extra = at.integers("output_padding");
  if (!extra.empty()) options.output_padding = extra;
  std::vector<std::int64_t> target = at.integers("output_shape");
  if (same && target.empty()) {
    for (std::size_t i = 2; i < x.size(); ++i) target.push_back(x[i] * options.stride[i - 2]);
  }
  if (!target.empty()) {
    if (target.size() == x.size()) target.erase(target.begin(), target.begin() + 2);
    if (target.size() + 2 != x.size()) at.fail("has another number of output extents than spatial axes");
    options.output_padding.resize(target.size(), 0);
    for (std::size_t i = 0; i < target.size(); ++i) {
      const std::int64_t reach = (at.shape(1)[i + 2] - 1) * options.dilation[i] + 1;
      const std::int64_t whole = (x[i + 2] - 1) * options.stride[i] + options.output_padding[i] + reach;
      const std::int64_t all = std::max<std::int64_t>(0, whole - target[i]);
      if (whole < target[i]) options.output_padding[i] += target[i] - whole;
      options.padding[i] = rule == "SAME_UPPER" ? all / 2 : all - all / 2;
      options.padding_end[i] = all - options.padding[i];
    }
  }
  at.set(0, at.net().conv_transpose(at.value(0), at.value(1), bias(at), options, at.layer()));
}

/// A product with a weight: [..., K] x [K, M] is a linear layer with turned weights.
void gemm(Importer& at) {
  if (at.shape(0).size() != 2 || at.shape(1).size() != 2) at.fail("needs matrices");
  const float alpha = at.real("alpha", 1), beta = at.real("beta", 1);
  const std::string layer = at.layer();
  const bool turned = at.integer("transB", 0) == 0;
  const std::int64_t outputs = at.shape(1)[turned ? 1 : 0];
  Value x = at.real_value(0);
  if (at.integer("transA", 0) != 0) x = at.net().transpose(x, {1, 0});
  const bool is_bias = at.has(2) && beta == 1 && alpha == 1 && product_of(at.shape(2)) == outputs &&
                       (at.shape(2).size() == 1 || at.shape(2) == Extents{1, outputs});
  Value b;
  if (is_bias) {
    b = at.value(2);
    if (at.net().shape(b) != Extents{outputs}) b = at.net().reshape(b, {outputs}, layer + ".bias");
  }
  Value y = at.net().linear(x, at.real_value(1), b, turned, layer);
  if (alpha != 1) y = apply(at, "mul_scalar", {y}, {alpha});
  if (at.has(2) && !is_bias) {
    const Value c = beta == 1 ? at.value(2) : apply(at, "mul_scalar", {at.value(2)}, {beta});
    y = apply(at, "add", {y, c});
  }
  at.set(0, y, at.net().shape(y), at.type(0));
}

void matmul(Importer& at) {
  check_precision(at);
  const Extents a = at.shape(0), b = at.shape(1);
  if (a.empty() || b.empty()) at.fail("multiplies scalars");
  const std::string layer = at.layer();
  const ElementType type = at.type(0);
  if (b.size() == 2 && a.size() >= 2) {
    const Value y = at.net().linear(at.real_value(0), at.real_value(1), {}, true, layer);
    return at.set(0, y, at.net().shape(y), type);
  }
  const Value y = at.net().matmul(at.real_value(0), at.real_value(1), {}, layer);
  at.set(0, y, a.size() == 1 && b.size() == 1 ? Extents{} : at.net().shape(y), type);
}

}  // namespace

const OpTable& product_ops() {
  static const OpTable table{
      {"Conv", conv}, {"ConvTranspose", conv_transpose}, {"Gemm", gemm}, {"MatMul", matmul}};
  return table;
}

}  // namespace penstock::onnx
