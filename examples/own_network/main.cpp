// A network of one's own, trained on Fashion-MNIST under a memory budget.
#include <penstock/penstock.h>

#include <cstdio>
#include <exception>

namespace {

penstock::Value block(penstock::NetworkBuilder& net, const std::string& name, penstock::Value x) {
  penstock::Value y = net.conv(name + ".conv1", x, 16, {.padding = {1}, .bias = false});
  y = net.relu(net.batch_norm(name + ".bn1", y));
  y = net.conv(name + ".conv2", y, 16, {.padding = {1}, .bias = false});
  return net.relu(net.add(net.batch_norm(name + ".bn2", y), x));
}

penstock::Network make(const penstock::ModelOptions& sizes) {
  penstock::NetworkBuilder net("small");
  penstock::Value x = net.input("images", penstock::DType::f32,
                                {sizes.batch, sizes.channels, sizes.image_size, sizes.image_size});
  const penstock::Value labels = net.input("labels", penstock::DType::s32, {sizes.batch});
  x = net.conv("stem", x, 16, {.padding = {1}});
  x = net.max_pool(block(net, "block1", x), {});
  x = net.max_pool(block(net, "block2", x), {});
  x = net.flatten(net.global_avg_pool(block(net, "block3", x)));
  net.classifier(net.linear("classifier", x, sizes.classes), labels);
  return net.finish();
}

}  // namespace

int main() {
  try {
    penstock::TrainingOptions options;
    options.data = "fashion-mnist";
    options.batch = 64;
    options.steps = 200;
    options.session.memory.budget_bytes = 256 << 20;
    options.evaluate = true;
    const penstock::TrainingResult result = penstock::train({"small", 1, 28, 10, make}, options);
    std::printf("loss %.3f -> %.3f, accuracy %.1f %%\n", result.loss.front(), result.loss.back(),
                result.accuracy * 100);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
