#include "models/families.h"

namespace penstock::models {

Network build_lenet(const Instance& instance) {
  auto [net, images, labels] = instance.begin();
  const PoolOptions halve{{2}, {2}};
  Value x = net.conv("conv1", images, instance.channels(6), {.kernel = {5}, .padding = {2}});
  x = net.max_pool(net.relu(x), halve, "pool1");
  x = net.conv("conv2", x, instance.channels(16), {.kernel = {5}});
  x = net.max_pool(net.relu(x), halve, "pool2");
  x = net.relu(net.linear("fc1", net.flatten(x), instance.channels(120)));
  x = net.relu(net.linear("fc2", x, instance.channels(84)));
  net.classifier(net.linear("fc3", x, instance.classes), labels);
  return net.finish();
}

}  // namespace penstock::models
