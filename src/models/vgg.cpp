#include <fmt/format.h>

#include <array>

#include "models/families.h"

namespace penstock::models {

namespace {

constexpr std::array<std::int64_t, 5> kStageChannels{64, 128, 256, 512, 512};

Value linear(NetworkBuilder& net, const std::string& name, Value x, std::int64_t features) {
  x = net.linear(name, x, features);
  net.init(name + ".weight", Init::normal(0.01F));
  net.init(name + ".bias", {});
  return x;
}

}  // namespace

Network build_vgg(const Instance& instance, const std::vector<int>& convolutions) {
  auto [net, images, labels] = instance.begin();
  Value x = images;
  int index = 0;
  for (std::size_t stage = 0; stage < kStageChannels.size(); ++stage) {
    const std::int64_t channels = instance.channels(kStageChannels[stage]);
    for (int i = 0; i < convolutions[stage]; ++i) {
      const std::string name = fmt::format("features.{}", index);
      x = net.conv(name, x, channels, {.padding = {1}});
      net.init(name + ".weight", he_normal(channels * 9));
      net.init(name + ".bias", {});
      x = net.relu(x);
      index += 2;
    }
    x = net.max_pool(x, {}, fmt::format("features.{}", index++));
  }
  x = net.flatten(net.adaptive_avg_pool(x, 7, "avgpool"));
  x = net.relu(linear(net, "classifier.0", x, instance.channels(4096)));
  x = net.dropout(x, instance.dropout_probability(0.5F), "classifier.2");
  x = net.relu(linear(net, "classifier.3", x, instance.channels(4096)));
  x = net.dropout(x, instance.dropout_probability(0.5F), "classifier.5");
  net.classifier(linear(net, "classifier.6", x, instance.classes), labels);
  return net.finish();
}

}  // namespace penstock::models
