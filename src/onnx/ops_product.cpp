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

void conv_transpose(Importer& at) {
  if (!at.integers("output_shape").empty() || at.text("auto_pad", "NOTSET") != "NOTSET")
    at.fail("has output_shape or auto_pad, which is not supported; give pads");
  ConvOptions options = conv_options(at, at.shape(1));
  const std::vector<std::int64_t> extra = at.integers("output_padding");
  if (!extra.empty()) options.output_padding = extra;
  at.set(0, at.net().conv_transpose(at.value(0), at.value(1), bias(at), options, at.layer()));
}

/// A matrix product with a weight: [..., K] x [K, M] is a linear layer with turned weights.
void gemm(Importer& at) {
  if (at.real("alpha", 1) != 1 || (at.has(2) && at.real("beta", 1) != 1))
    at.fail("has alpha or beta that is not 1, which is not supported");
  if (at.shape(0).size() != 2 || at.shape(1).size() != 2) at.fail("needs matrices");
  const std::string layer = at.layer();
  Value x = at.value(0);
  if (at.integer("transA", 0) != 0) x = at.net().transpose(x, {1, 0}, layer + ".turned");
  const bool turned = at.integer("transB", 0) == 0;
  Value b;
  if (at.has(2)) {
    const std::int64_t outputs = at.shape(1)[turned ? 1 : 0];
    b = at.value(2);
    if (at.net().shape(b) == Extents{1, outputs}) b = at.net().reshape(b, {outputs}, layer + ".bias");
  }
  at.set(0, at.net().linear(x, at.value(1), b, turned, layer));
}

void matmul(Importer& at) {
  const Extents a = at.shape(0), b = at.shape(1);
  if (a.size() < 2 || b.size() < 2) at.fail("multiplies vectors, which is not supported");
  const std::string layer = at.layer();
  if (b.size() == 2) {
    at.set(0, at.net().linear(at.value(0), at.value(1), {}, true, layer));
    return;
  }
  if (a.size() != b.size()) at.fail("multiplies tensors of different ranks, which is not supported");
  at.set(0, at.net().matmul(at.value(0), at.value(1), {}, layer));
}

}  // namespace

const OpTable& product_ops() {
  static const OpTable table{
      {"Conv", conv}, {"ConvTranspose", conv_transpose}, {"Gemm", gemm}, {"MatMul", matmul}};
  return table;
}

}  // namespace penstock::onnx
