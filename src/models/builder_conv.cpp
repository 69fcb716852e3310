#include <fmt/format.h>

#include <cmath>

#include "models/builder.h"
#include "models/window.h"

namespace penstock::models {

namespace {

/// PyTorch's rule for the weights and biases of convolutions and linear layers.
ir::Init fan_in_uniform(std::int64_t fan_in) {
  return {ir::Init::Kind::uniform, static_cast<float>(1 / std::sqrt(static_cast<double>(fan_in)))};
}

void check_channels(const std::string& layer, std::int64_t in, std::int64_t out, std::int64_t groups) {
  if (out < 1 || groups < 1 || in % groups != 0 || out % groups != 0) {
    throw UserError(fmt::format("layer {}: {} input and {} output channels do not divide into {} groups",
                                layer, in, out, groups));
  }
}

}  // namespace

Value Builder::conv(const std::string& name, Value x, std::int64_t channels, const ConvOptions& options) {
  const std::string layer = layer_name(name, x, "conv");
  const ir::Shape in = shape(x);
  Window window{layer,
                "convolution",
                spatial(layer, "kernel", in, options.kernel, 1),
                spatial(layer, "stride", in, options.stride, 1),
                spatial(layer, "padding", in, options.padding, 0),
                spatial(layer, "dilation", in, options.dilation, 1)};
  check_channels(layer, in[1], channels, options.groups);
  const ir::Shape out = with_extents(in, channels, windowed_extents(window, in));

  std::vector<std::int64_t> weight{channels, in[1] / options.groups};
  weight.insert(weight.end(), window.kernel.begin(), window.kernel.end());
  const ir::Shape weight_shape(std::move(weight));
  const ir::Init init = fan_in_uniform(weight_shape.elements(1, weight_shape.rank()));
  std::vector<Value> inputs{x, parameter(layer + ".weight", weight_shape, init)};
  if (options.bias) inputs.push_back(parameter(layer + ".bias", {channels}, init));

  ir::ConvAttrs attrs;
  attrs.stride = window.stride;
  attrs.dilation = window.dilation;
  attrs.padding_begin = attrs.padding_end = window.padding;
  attrs.groups = options.groups;
  return make(ir::OpKind::conv, layer, std::move(inputs), out, std::move(attrs));
}

Value Builder::conv_transpose(const std::string& name, Value x, std::int64_t channels,
                              const ConvOptions& options) {
  const std::string layer = layer_name(name, x, "conv_transpose");
  const ir::Shape in = shape(x);
  const Extents kernel = spatial(layer, "kernel", in, options.kernel, 1);
  ir::ConvAttrs attrs;
  attrs.stride = spatial(layer, "stride", in, options.stride, 1);
  attrs.dilation = spatial(layer, "dilation", in, options.dilation, 1);
  attrs.padding_begin = attrs.padding_end = spatial(layer, "padding", in, options.padding, 0);
  attrs.output_padding = spatial(layer, "output padding", in, options.output_padding, 0);
  attrs.groups = options.groups;
  check_channels(layer, in[1], channels, options.groups);

  std::vector<std::int64_t> extents;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    if (attrs.output_padding[i] >= std::max(attrs.stride[i], attrs.dilation[i])) {
      throw UserError(fmt::format("layer {}: output padding {} must be below the stride or the dilation",
                                  layer, attrs.output_padding[i]));
    }
    extents.push_back((in[i + 2] - 1) * attrs.stride[i] - 2 * attrs.padding_begin[i] +
                      attrs.dilation[i] * (kernel[i] - 1) + 1 + attrs.output_padding[i]);
  }

  std::vector<std::int64_t> weight{in[1], channels / options.groups};
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  const ir::Shape weight_shape(std::move(weight));
  const ir::Init init = fan_in_uniform(weight_shape.elements(1, weight_shape.rank()));
  std::vector<Value> inputs{x, parameter(layer + ".weight", weight_shape, init)};
  if (options.bias) inputs.push_back(parameter(layer + ".bias", {channels}, init));
  return make(ir::OpKind::conv_transpose, layer, std::move(inputs), with_extents(in, channels, extents),
              std::move(attrs));
}

Value Builder::linear(const std::string& name, Value x, std::int64_t features, bool bias) {
  const std::string layer = layer_name(name, x, "linear");
  ir::Shape out = shape(x);
  const std::size_t last = out.rank() - 1;
  if (out.rank() < 2 || features < 1) {
    throw UserError(fmt::format("layer {}: cannot make {} features of {}; it needs [N, ..., K]", layer,
                                features, out.to_string()));
  }
  const ir::Init init = fan_in_uniform(out[last]);
  std::vector<Value> inputs{x, parameter(layer + ".weight", {features, out[last]}, init)};
  if (bias) inputs.push_back(parameter(layer + ".bias", {features}, init));
  out[last] = features;
  return make(ir::OpKind::linear, layer, std::move(inputs), out, ir::LinearAttrs{});
}

Value Builder::matmul(Value a, Value b, const ir::MatmulAttrs& attrs, const std::string& name) {
  const std::string layer = layer_name(name, a, "matmul");
  ir::Shape out = shape(a);
  ir::Shape right = shape(b);
  const std::size_t rank = out.rank();
  bool fits = rank >= 2 && right.rank() == rank;
  if (fits) {
    if (attrs.transpose_a) std::swap(out[rank - 2], out[rank - 1]);
    if (attrs.transpose_b) std::swap(right[rank - 2], right[rank - 1]);
    for (std::size_t i = 0; i + 2 < rank; ++i) fits = fits && out[i] == right[i];
    fits = fits && out[rank - 1] == right[rank - 2];
  }
  if (!fits) {
    throw UserError(
        fmt::format("layer {}: cannot multiply {} by {}", layer, shape(a).to_string(), shape(b).to_string()));
  }
  out[rank - 1] = right[rank - 1];
  return make(ir::OpKind::matmul, layer, {a, b}, out, attrs);
}

Value Builder::bias(const std::string& name, Value x) {
  const std::string layer = layer_name(name, x, "bias");
  if (shape(x).rank() < 2) {
    throw UserError(fmt::format("layer {} needs an input [N, C, ...], not {}", layer, shape(x).to_string()));
  }
  const Value b = parameter(layer + ".bias", {shape(x)[1]}, {});
  return make(ir::OpKind::bias, layer, {x, b}, shape(x));
}

}  // namespace penstock::models
