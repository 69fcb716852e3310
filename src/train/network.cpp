#include "train/network.h"

#include <fmt/format.h>

#include "base/error.h"
#include "models/builder.h"

namespace penstock {

struct Layers::Impl {
  models::Builder& builder;
  std::int64_t classes;
};

namespace {

models::ConvOptions conv_options(const ConvLayer& layer) {
  models::ConvOptions options;
  options.kernel = {layer.kernel};
  options.stride = {layer.stride};
  options.padding = {layer.padding};
  options.dilation = {layer.dilation};
  options.groups = layer.groups;
  options.bias = layer.bias;
  return options;
}

models::PoolOptions pool_options(const PoolLayer& layer) {
  models::PoolOptions options;
  options.kernel = {layer.kernel};
  options.stride = {layer.stride};
  options.padding = {layer.padding};
  return options;
}

}  // namespace

Value Layers::conv(const std::string& name, Value x, const ConvLayer& layer) {
  return impl_->builder.conv(name, x, layer.channels, conv_options(layer));
}
Value Layers::conv_transpose(const std::string& name, Value x, const ConvLayer& layer) {
  return impl_->builder.conv_transpose(name, x, layer.channels, conv_options(layer));
}
Value Layers::linear(const std::string& name, Value x, std::int64_t features, bool bias) {
  return impl_->builder.linear(name, x, features, bias);
}
Value Layers::batch_norm(const std::string& name, Value x) {
  return impl_->builder.batch_norm(name, x);
}
Value Layers::layer_norm(const std::string& name, Value x) {
  return impl_->builder.layer_norm(name, x);
}
Value Layers::relu(Value x) {
  return impl_->builder.relu(x);
}
Value Layers::leaky_relu(Value x, float slope) {
  return impl_->builder.activation(x, {ir::Activation::leaky_relu, slope});
}
Value Layers::gelu(Value x) {
  return impl_->builder.activation(x, {ir::Activation::gelu, 0});
}
Value Layers::sigmoid(Value x) {
  return impl_->builder.activation(x, {ir::Activation::sigmoid, 0});
}
Value Layers::tanh(Value x) {
  return impl_->builder.activation(x, {ir::Activation::tanh, 0});
}
Value Layers::max_pool(Value x, const PoolLayer& layer) {
  return impl_->builder.max_pool(x, pool_options(layer));
}
Value Layers::avg_pool(Value x, const PoolLayer& layer) {
  return impl_->builder.avg_pool(x, pool_options(layer));
}
Value Layers::global_avg_pool(Value x) {
  return impl_->builder.global_avg_pool(x);
}
Value Layers::dropout(Value x, float probability) {
  return impl_->builder.dropout(x, probability);
}
Value Layers::add(Value a, Value b) {
  return impl_->builder.add(a, b);
}
Value Layers::multiply(Value a, Value b) {
  return impl_->builder.multiply(a, b);
}
Value Layers::concat(const std::vector<Value>& values) {
  return impl_->builder.concat(values);
}
Value Layers::upsample(Value x, std::int64_t factor, bool bilinear) {
  return impl_->builder.upsample(x, {factor}, bilinear);
}
Value Layers::flatten(Value x) {
  return impl_->builder.flatten(x);
}
std::vector<std::int64_t> Layers::shape(Value x) const {
  return impl_->builder.shape(x).dims();
}
std::int64_t Layers::classes() const {
  return impl_->classes;
}

Network Network::model(std::string name) {
  Network network;
  network.name = std::move(name);
  return network;
}

Network Network::custom(std::string name, std::int64_t channels, std::int64_t image_size,
                        std::int64_t classes, Define define) {
  if (!define) throw UserError(fmt::format("network '{}' has no function that defines it", name));
  return {std::move(name), channels, image_size, classes, std::move(define)};
}

namespace training {

models::ModelInfo network_info(const Network& network) {
  if (!network.define) return models::find_model(network.name);
  models::ModelInfo info;
  info.name = network.name;
  info.channels = network.channels;
  info.image_size = network.image_size;
  info.classes = network.classes;
  return info;
}

ir::Graph build_network(const Network& network, const models::ModelOptions& options) {
  if (!network.define) return models::build_model(network.name, options);
  models::Builder builder(network.name,
                          {options.batch, options.channels, options.image_size, options.image_size}, {});
  Layers::Impl impl{builder, options.classes};
  Layers layers(&impl);
  const Value logits = network.define(layers, builder.images());
  const ir::Shape& shape = builder.shape(logits);
  if (shape.rank() != 2 || shape[1] != options.classes) {
    throw UserError(
        fmt::format("network '{}' gives {} for {} classes; its last layer must give [batch, classes]",
                    network.name, shape.to_string(), options.classes));
  }
  return builder.finish(logits);
}

}  // namespace training
}  // namespace penstock
