#include <fmt/format.h>

#include "base/error.h"
#include "models/families.h"

namespace penstock::models {

namespace {

/// Twice convolution, batch norm, ReLU.
Value double_conv(NetworkBuilder& net, const std::string& name, Value x, std::int64_t channels) {
  for (int i = 1; i <= 2; ++i) {
    const std::string conv = fmt::format("{}.conv{}", name, i);
    x = net.conv(conv, x, channels, {.padding = {1}, .bias = false});
    net.init(conv + ".weight", he_normal(channels * (net.shape(x).size() == 5 ? 27 : 9)));
    x = net.relu(net.batch_norm(fmt::format("{}.norm{}", name, i), x));
  }
  return x;
}

}  // namespace

Network build_unet(const Instance& instance, std::int64_t base_channels, int depth) {
  const std::int64_t edge = instance.images[2];
  const std::int64_t factor = std::int64_t{1} << depth;
  if (edge % factor != 0) {
    const std::int64_t below = edge / factor * factor;
    throw UserError(
        fmt::format("image size {} does not fit {}, which halves it {} times: use a multiple of {}{}", edge,
                    instance.name, depth, factor,
                    below > 0 ? fmt::format(", {} or {}", below, below + factor) : std::string()));
  }
  auto [net, images, labels] = instance.begin();
  std::vector<Value> skips;
  Value x = images;
  for (int level = 1; level <= depth; ++level) {
    x = double_conv(net, fmt::format("encoder{}", level), x, instance.channels(base_channels << (level - 1)));
    skips.push_back(x);
    x = net.max_pool(x, {}, fmt::format("pool{}", level));
  }
  x = double_conv(net, "bottleneck", x, instance.channels(base_channels << depth));
  for (int level = depth; level >= 1; --level) {
    const std::int64_t channels = instance.channels(base_channels << (level - 1));
    x = net.conv_transpose(fmt::format("up{}", level), x, channels, {.kernel = {2}, .stride = {2}});
    x = net.concat({skips[static_cast<std::size_t>(level - 1)], x}, 1, fmt::format("skip{}", level));
    x = double_conv(net, fmt::format("decoder{}", level), x, channels);
  }
  net.classifier(net.conv("head", x, instance.classes, {.kernel = {1}}), labels);
  return net.finish();
}

}  // namespace penstock::models
