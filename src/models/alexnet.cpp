#include "models/families.h"

namespace penstock::models {

Network build_alexnet(const Instance& instance) {
  auto [net, images, labels] = instance.begin();
  const PoolOptions pool{{3}, {2}};
  Value x = images;
  x = net.relu(
      net.conv("features.0", x, instance.channels(64), {.kernel = {11}, .stride = {4}, .padding = {2}}));
  x = net.max_pool(x, pool, "features.2");
  x = net.relu(net.conv("features.3", x, instance.channels(192), {.kernel = {5}, .padding = {2}}));
  x = net.max_pool(x, pool, "features.5");
  x = net.relu(net.conv("features.6", x, instance.channels(384), {.padding = {1}}));
  x = net.relu(net.conv("features.8", x, instance.channels(256), {.padding = {1}}));
  x = net.relu(net.conv("features.10", x, instance.channels(256), {.padding = {1}}));
  x = net.max_pool(x, pool, "features.12");
  x = net.flatten(net.adaptive_avg_pool(x, 6, "avgpool"));
  x = net.dropout(x, instance.dropout_probability(0.5F), "classifier.0");
  x = net.relu(net.linear("classifier.1", x, instance.channels(4096)));
  x = net.dropout(x, instance.dropout_probability(0.5F), "classifier.3");
  x = net.relu(net.linear("classifier.4", x, instance.channels(4096)));
  net.classifier(net.linear("classifier.6", x, instance.classes), labels);
  return net.finish();
}

}  // namespace penstock::models
