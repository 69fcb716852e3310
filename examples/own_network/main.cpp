// A network of one's own, trained on Fashion-MNIST under a memory budget.
#include <penstock/penstock.h>

#include <cstdio>
#include <exception>

namespace {

penstock::Value block(penstock::Layers& layers, const std::string& name, penstock::Value x,
                      std::int64_t channels) {
  penstock::Value y = layers.conv(name + ".conv1", x, {.channels = channels, .padding = 1, .bias = false});
  y = layers.relu(layers.batch_norm(name + ".bn1", y));
  y = layers.conv(name + ".conv2", y, {.channels = channels, .padding = 1, .bias = false});
  return layers.relu(layers.add(layers.batch_norm(name + ".bn2", y), x));
}

penstock::Value define(penstock::Layers& layers, penstock::Value x) {
  x = layers.conv("stem", x, {.channels = 16, .padding = 1});
  x = layers.max_pool(block(layers, "block1", x, 16), {});
  x = layers.max_pool(block(layers, "block2", x, 16), {});
  x = layers.flatten(layers.global_avg_pool(block(layers, "block3", x, 16)));
  return layers.linear("classifier", x, layers.classes());
}

}  // namespace

int main() {
  try {
    const auto network = penstock::Network::custom("small", 1, 28, 10, define);
    penstock::Options options;
    options.data = "fashion-mnist";
    options.batch = 64;
    options.steps = 200;
    options.memory = "256MiB";
    options.evaluate = true;
    const penstock::Result result = penstock::train(network, options);
    std::printf("loss %.3f -> %.3f, accuracy %.1f %%\n", result.loss.front(), result.loss.back(),
                result.accuracy * 100);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
