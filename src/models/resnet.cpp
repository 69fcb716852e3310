#include <fmt/format.h>

#include "models/families.h"

namespace penstock::models {

namespace {

/// Residual blocks, named and initialized as torchvision does.
class Blocks {
 public:
  Blocks(NetworkBuilder& net, bool bottleneck) : net_(net), bottleneck_(bottleneck) {}

  Value conv_norm(const std::string& conv, const std::string& norm, Value x, std::int64_t channels,
                  std::int64_t kernel, std::int64_t stride) {
    x = net_.conv(conv, x, channels,
                  {.kernel = {kernel}, .stride = {stride}, .padding = {kernel / 2}, .bias = false});
    net_.init(conv + ".weight", he_normal(channels * kernel * kernel));
    return net_.batch_norm(norm, x);
  }

  /// A stage of `count` blocks; the first one has the stride.
  Value stage(const std::string& name, Value x, int count, std::int64_t channels, std::int64_t stride) {
    for (int i = 0; i < count; ++i)
      x = block(fmt::format("{}.{}", name, i), x, channels, i == 0 ? stride : 1);
    return x;
  }

 private:
  Value block(const std::string& name, Value x, std::int64_t channels, std::int64_t stride) {
    const std::int64_t out_channels = bottleneck_ ? channels * 4 : channels;
    Value y = x;
    if (bottleneck_) {
      y = net_.relu(conv_norm(name + ".conv1", name + ".bn1", y, channels, 1, 1));
      y = net_.relu(conv_norm(name + ".conv2", name + ".bn2", y, channels, 3, stride));
      y = conv_norm(name + ".conv3", name + ".bn3", y, out_channels, 1, 1);
    } else {
      y = net_.relu(conv_norm(name + ".conv1", name + ".bn1", y, channels, 3, stride));
      y = conv_norm(name + ".conv2", name + ".bn2", y, out_channels, 3, 1);
    }
    if (stride != 1 || net_.shape(x)[1] != out_channels) {
      x = conv_norm(name + ".downsample.0", name + ".downsample.1", x, out_channels, 1, stride);
    }
    return net_.relu(net_.add(y, x, name + ".add"), name + ".relu");
  }

  NetworkBuilder& net_;
  bool bottleneck_;
};

Network finish(NetworkBuilder& net, Value x, Value labels, std::int64_t classes) {
  x = net.flatten(net.global_avg_pool(x, "avgpool"));
  net.classifier(net.linear("fc", x, classes), labels);
  return net.finish();
}

}  // namespace

Network build_resnet(const Instance& instance, bool bottleneck, const std::vector<int>& blocks) {
  auto [net, images, labels] = instance.begin();
  Blocks residual(net, bottleneck);
  Value x = net.relu(residual.conv_norm("conv1", "bn1", images, instance.channels(64), 7, 2));
  x = net.max_pool(x, {{3}, {2}, {1}}, "maxpool");
  std::int64_t channels = 64;
  for (std::size_t i = 0; i < blocks.size(); ++i, channels *= 2) {
    x = residual.stage(fmt::format("layer{}", i + 1), x, blocks[i], instance.channels(channels),
                       i == 0 ? 1 : 2);
  }
  return finish(net, x, labels, instance.classes);
}

Network build_small_resnet(const Instance& instance, int blocks) {
  auto [net, images, labels] = instance.begin();
  Blocks residual(net, false);
  Value x = net.relu(residual.conv_norm("conv1", "bn1", images, instance.channels(16), 3, 1));
  std::int64_t channels = 16;
  for (int i = 0; i < 3; ++i, channels *= 2) {
    x = residual.stage(fmt::format("layer{}", i + 1), x, blocks, instance.channels(channels), i == 0 ? 1 : 2);
  }
  return finish(net, x, labels, instance.classes);
}

}  // namespace penstock::models
