#include <fmt/format.h>

#include <cmath>

#include "models/builder_impl.h"
#include "models/sliding.h"

namespace penstock {

namespace {

/// PyTorch's rule for the weights and biases of convolutions and linear layers.
Init fan_in_uniform(std::int64_t fan_in) {
  return Init::uniform(static_cast<float>(1 / std::sqrt(static_cast<double>(fan_in))));
}

ir::ConvAttrs conv_attrs(const std::string& layer, const ir::Shape& x, const ConvOptions& options) {
  ir::ConvAttrs attrs;
  attrs.stride = spatial(layer, "stride", x, options.stride, 1);
  attrs.dilation = spatial(layer, "dilation", x, options.dilation, 1);
  attrs.padding_begin = spatial(layer, "padding", x, options.padding, 0);
  attrs.padding_end = options.padding_end.empty() ? attrs.padding_begin
                                                  : spatial(layer, "padding", x, options.padding_end, 0);
  attrs.groups = options.groups;
  return attrs;
}

void check_groups(const std::string& layer, const ir::Shape& x, std::int64_t channels, std::int64_t groups) {
  if (channels < 1 || groups < 1 || x[1] % groups != 0 || channels % groups != 0) {
    throw UserError(fmt::format("layer {}: {} input and {} output channels do not divide into {} groups",
                                layer, x[1], channels, groups));
  }
}

std::vector<Value> with_bias(std::vector<Value> inputs, Value bias) {
  if (bias != Value{}) inputs.push_back(bias);
  return inputs;
}

/// The kernel of a weight [first, second, kernel...].
Extents kernel_of(const std::string& layer, const ir::Shape& x, const ir::Shape& weight) {
  if (weight.rank() != x.rank()) {
    throw UserError(fmt::format("layer {}: weights {} have another rank than {}", layer, weight.to_string(),
                                x.to_string()));
  }
  return {weight.dims().begin() + 2, weight.dims().end()};
}

Value make_conv(NetworkBuilder::Impl& net, const std::string& layer, Value x, Value weight, Value bias,
                const ConvOptions& options) {
  const ir::Shape& in = net.shape(x);
  ir::ConvAttrs attrs = conv_attrs(layer, in, options);
  check_fits({layer, "convolution", kernel_of(layer, in, net.shape(weight)), attrs.stride,
              attrs.padding_begin, attrs.padding_end, attrs.dilation},
             in);
  return net.make(ir::OpKind::conv, layer, with_bias({x, weight}, bias), std::move(attrs));
}

Value make_conv_transpose(NetworkBuilder::Impl& net, const std::string& layer, Value x, Value weight,
                          Value bias, const ConvOptions& options) {
  const ir::Shape& in = net.shape(x);
  ir::ConvAttrs attrs = conv_attrs(layer, in, options);
  attrs.output_padding = spatial(layer, "output padding", in, options.output_padding, 0);
  return net.make(ir::OpKind::conv_transpose, layer, with_bias({x, weight}, bias), std::move(attrs));
}

/// The parameters of a convolution: weight [first, second, kernel...] and bias [channels] or none.
struct ConvState {
  Value weight, bias;
};

ConvState conv_state(NetworkBuilder::Impl& net, const std::string& layer, std::int64_t first,
                     std::int64_t second, const Extents& kernel, std::int64_t bias_channels) {
  Extents dims{first, second};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  const ir::Shape weight(std::move(dims));
  const Init init = fan_in_uniform(weight.elements(1, weight.rank()));
  ConvState state;
  state.weight = net.add_state(layer + ".weight", weight, ir::Role::parameter, init);
  if (bias_channels > 0)
    state.bias = net.add_state(layer + ".bias", {bias_channels}, ir::Role::parameter, init);
  return state;
}

}  // namespace

Value NetworkBuilder::conv(const std::string& name, Value x, std::int64_t channels,
                           const ConvOptions& options) {
  const std::string layer = impl_->layer_name(name, x, "conv");
  const ir::Shape in = impl_->shape(x);
  const Extents kernel = spatial(layer, "kernel", in, options.kernel, 1);
  check_groups(layer, in, channels, options.groups);
  const ir::ConvAttrs attrs = conv_attrs(layer, in, options);
  check_fits(
      {layer, "convolution", kernel, attrs.stride, attrs.padding_begin, attrs.padding_end, attrs.dilation},
      in);
  const ConvState state =
      conv_state(*impl_, layer, channels, in[1] / options.groups, kernel, options.bias ? channels : 0);
  return make_conv(*impl_, layer, x, state.weight, state.bias, options);
}

Value NetworkBuilder::conv(Value x, Value weight, Value bias, const ConvOptions& options,
                           const std::string& name) {
  return make_conv(*impl_, impl_->layer_name(name, x, "conv"), x, weight, bias, options);
}

Value NetworkBuilder::conv_transpose(const std::string& name, Value x, std::int64_t channels,
                                     const ConvOptions& options) {
  const std::string layer = impl_->layer_name(name, x, "conv_transpose");
  const ir::Shape in = impl_->shape(x);
  const Extents kernel = spatial(layer, "kernel", in, options.kernel, 1);
  check_groups(layer, in, channels, options.groups);
  const ConvState state =
      conv_state(*impl_, layer, in[1], channels / options.groups, kernel, options.bias ? channels : 0);
  return make_conv_transpose(*impl_, layer, x, state.weight, state.bias, options);
}

Value NetworkBuilder::conv_transpose(Value x, Value weight, Value bias, const ConvOptions& options,
                                     const std::string& name) {
  return make_conv_transpose(*impl_, impl_->layer_name(name, x, "conv_transpose"), x, weight, bias, options);
}

Value NetworkBuilder::linear(const std::string& name, Value x, std::int64_t features, bool bias) {
  const std::string layer = impl_->layer_name(name, x, "linear");
  if (impl_->shape(x).rank() < 1) throw UserError(fmt::format("layer {} needs an input [..., K]", layer));
  const std::int64_t in_features = impl_->shape(x).dims().back();
  const Init init = fan_in_uniform(in_features);
  std::vector<Value> inputs{
      x, impl_->add_state(layer + ".weight", {features, in_features}, ir::Role::parameter, init)};
  if (bias) inputs.push_back(impl_->add_state(layer + ".bias", {features}, ir::Role::parameter, init));
  return impl_->make(ir::OpKind::linear, layer, inputs, ir::LinearAttrs{});
}

Value NetworkBuilder::linear(Value x, Value weight, Value bias, bool turned, const std::string& name) {
  ir::LinearAttrs attrs;
  attrs.turned = turned;
  return impl_->make(ir::OpKind::linear, impl_->layer_name(name, x, "linear"), with_bias({x, weight}, bias),
                     attrs);
}

Value NetworkBuilder::bias(const std::string& name, Value x) {
  const std::string layer = impl_->layer_name(name, x, "bias");
  impl_->check_channels(layer, x);
  const Value bias = impl_->add_state(layer + ".bias", {impl_->shape(x)[1]}, ir::Role::parameter, {});
  return impl_->make(ir::OpKind::bias, layer, {x, bias});
}

Value NetworkBuilder::bias(Value x, Value bias, const std::string& name) {
  return impl_->make(ir::OpKind::bias, impl_->layer_name(name, x, "bias"), {x, bias});
}

}  // namespace penstock
