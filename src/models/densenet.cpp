#include <fmt/format.h>

#include "models/families.h"

namespace penstock::models {

namespace {

/// Convolution without bias, initialized as torchvision does.
Value conv(NetworkBuilder& net, const std::string& name, Value x, std::int64_t channels, std::int64_t kernel,
           std::int64_t stride = 1) {
  const std::int64_t fan_in = net.shape(x)[1] * kernel * kernel;
  x = net.conv(name, x, channels,
               {.kernel = {kernel}, .stride = {stride}, .padding = {kernel / 2}, .bias = false});
  net.init(name + ".weight", he_normal(fan_in));
  return x;
}

Value norm_relu(NetworkBuilder& net, const std::string& name, Value x) {
  return net.relu(net.batch_norm(name, x));
}

Value dense_block(NetworkBuilder& net, const std::string& name, Value x, int layers, std::int64_t growth) {
  for (int i = 1; i <= layers; ++i) {
    const std::string layer = fmt::format("{}.denselayer{}", name, i);
    Value y = conv(net, layer + ".conv1", norm_relu(net, layer + ".norm1", x), 4 * growth, 1);
    y = conv(net, layer + ".conv2", norm_relu(net, layer + ".norm2", y), growth, 3);
    x = net.concat({x, y}, 1, layer + ".concat");
  }
  return x;
}

}  // namespace

Network build_densenet(const Instance& instance, const std::vector<int>& layers) {
  auto [net, images, labels] = instance.begin();
  const std::int64_t growth = instance.channels(32);
  Value x = conv(net, "features.conv0", images, instance.channels(64), 7, 2);
  x = net.max_pool(norm_relu(net, "features.norm0", x), {{3}, {2}, {1}}, "features.pool0");
  for (std::size_t i = 0; i < layers.size(); ++i) {
    x = dense_block(net, fmt::format("features.denseblock{}", i + 1), x, layers[i], growth);
    if (i + 1 == layers.size()) break;
    const std::string transition = fmt::format("features.transition{}", i + 1);
    x = conv(net, transition + ".conv", norm_relu(net, transition + ".norm", x), net.shape(x)[1] / 2, 1);
    x = net.avg_pool(x, {}, transition + ".pool");
  }
  x = norm_relu(net, "features.norm5", x);
  x = net.linear("classifier", net.flatten(net.global_avg_pool(x, "avgpool")), instance.classes);
  net.init("classifier.bias", {});
  net.classifier(x, labels);
  return net.finish();
}

}  // namespace penstock::models
