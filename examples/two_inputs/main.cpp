// A network with two inputs and a loss of its own, trained step by step through a session: it learns by how
// much two vectors differ.
#include <penstock/penstock.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace {

constexpr std::int64_t kBatch = 64, kWidth = 8;

penstock::Network make() {
  penstock::NetworkBuilder net("difference");
  const penstock::Value left = net.input("left", penstock::DType::f32, {kBatch, kWidth});
  const penstock::Value right = net.input("right", penstock::DType::f32, {kBatch, kWidth});
  const penstock::Value wanted = net.input("wanted", penstock::DType::f32, {kBatch, 1});
  penstock::Value x = net.relu(net.linear("hidden", net.concat({left, right}), 64));
  x = net.linear("answer", x, 1);
  net.output("answer", x);
  const penstock::Value minus = net.buffer("minus", {kBatch, 1}, penstock::Init::constant(-1));
  const penstock::Value error = net.add(x, net.multiply(wanted, minus));
  const penstock::Value squares = net.reshape(net.multiply(error, error), {1, 1, kBatch});
  net.loss(net.reshape(net.global_avg_pool(squares), {1}));
  return net.finish();
}

}  // namespace

int main() {
  try {
    penstock::SessionOptions options;
    options.memory.budget_bytes = 64 << 20;
    options.memory.scope = penstock::BudgetScope::session;
    penstock::Session session(make(), penstock::Optimizer::adam(0.01), options);
    std::printf("%s", session.plan_text().c_str());
    std::vector<float> left(kBatch * kWidth), right(kBatch * kWidth), wanted(kBatch, 0);
    for (std::size_t i = 0; i < left.size(); ++i) {
      left[i] = std::sin(0.7F * static_cast<float>(i));
      right[i] = std::cos(1.3F * static_cast<float>(i));
      wanted[i / kWidth] += std::abs(left[i] - right[i]) / kWidth;
    }
    const penstock::Inputs inputs{{"left", left}, {"right", right}, {"wanted", wanted}};
    double first = 0, last = 0;
    for (int step = 0; step < 200; ++step) (step == 0 ? first : last) = session.step(inputs).loss;
    std::printf("loss %.4f -> %.4f\n", first, last);
    return last < 0.1 * first ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
