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

ir::ConvAttrs conv_attrs(const std::string& layer, const ir::Shape& x, std::int64_t channels,
                         const ConvOptions& options) {
  ir::ConvAttrs attrs;
  attrs.stride = spatial(layer, "stride", x, options.stride, 1);
  attrs.dilation = spatial(layer, "dilation", x, options.dilation, 1);
  attrs.padding_begin = attrs.padding_end = spatial(layer, "padding", x, options.padding, 0);
  attrs.groups = options.groups;
  if (channels < 1 || options.groups < 1 || x[1] % options.groups != 0 || channels % options.groups != 0) {
    throw UserError(fmt::format("layer {}: {} input and {} output channels do not divide into {} groups",
                                layer, x[1], channels, options.groups));
  }
  return attrs;
}

}  // namespace

std::vector<Value> Builder::conv_inputs(const std::string& layer, Value x, std::int64_t first,
                                        std::int64_t second, const Extents& kernel,
                                        std::int64_t bias_channels) {
  std::vector<std::int64_t> dims{first, second};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  const ir::Shape weight(std::move(dims));
  const ir::Init init = fan_in_uniform(weight.elements(1, weight.rank()));
  std::vector<Value> inputs{x, parameter(layer + ".weight", weight, init)};
  if (bias_channels > 0) inputs.push_back(parameter(layer + ".bias", {bias_channels}, init));
  return inputs;
}

Value Builder::conv(const std::string& name, Value x, std::int64_t channels, const ConvOptions& options) {
  const std::string layer = layer_name(name, x, "conv");
  const ir::Shape in = shape(x);
  const Extents kernel = spatial(layer, "kernel", in, options.kernel, 1);
  ir::ConvAttrs attrs = conv_attrs(layer, in, channels, options);
  check_fits({layer, "convolution", kernel, attrs.stride, attrs.padding_begin, attrs.dilation}, in);
  return make(ir::OpKind::conv, layer,
              conv_inputs(layer, x, channels, in[1] / options.groups, kernel, options.bias ? channels : 0),
              std::move(attrs));
}

Value Builder::conv_transpose(const std::string& name, Value x, std::int64_t channels,
                              const ConvOptions& options) {
  const std::string layer = layer_name(name, x, "conv_transpose");
  const ir::Shape in = shape(x);
  const Extents kernel = spatial(layer, "kernel", in, options.kernel, 1);
  ir::ConvAttrs attrs = conv_attrs(layer, in, channels, options);
  attrs.output_padding = spatial(layer, "output padding", in, options.output_padding, 0);
  return make(ir::OpKind::conv_transpose, layer,
              conv_inputs(layer, x, in[1], channels / options.groups, kernel, options.bias ? channels : 0),
              std::move(attrs));
}

Value Builder::linear(const std::string& name, Value x, std::int64_t features, bool bias) {
  const std::string layer = layer_name(name, x, "linear");
  const std::int64_t in_features = shape(x).dims().back();
  const ir::Init init = fan_in_uniform(in_features);
  std::vector<Value> inputs{x, parameter(layer + ".weight", {features, in_features}, init)};
  if (bias) inputs.push_back(parameter(layer + ".bias", {features}, init));
  return make(ir::OpKind::linear, layer, std::move(inputs), ir::LinearAttrs{});
}

Value Builder::matmul(Value a, Value b, const ir::MatmulAttrs& attrs, const std::string& name) {
  return make(ir::OpKind::matmul, layer_name(name, a, "matmul"), {a, b}, attrs);
}

Value Builder::bias(const std::string& name, Value x) {
  const std::string layer = layer_name(name, x, "bias");
  if (shape(x).rank() < 2) {
    throw UserError(fmt::format("layer {} needs an input [N, C, ...], not {}", layer, shape(x).to_string()));
  }
  return make(ir::OpKind::bias, layer, {x, parameter(layer + ".bias", {shape(x)[1]}, {})});
}

}  // namespace penstock::models
