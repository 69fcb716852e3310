#include <gtest/gtest.h>

#include <cstring>

#include "ir/graph.h"
#include "kernels/kernel.h"

namespace penstock::kernels {
namespace {

/// Two inputs and two outputs of different types; the second output reads the first input.
ir::Graph two_ways() {
  ir::Graph graph;
  const ir::TensorId x = graph.add_input("x", ir::DType::f32, {3});
  const ir::TensorId ids = graph.add_input("ids", ir::DType::s32, {2});
  graph.add_output("ids again", ids);
  graph.add_output("x again", x);
  return graph;
}

void expect_through(Backend& backend) {
  const ir::Graph graph = two_ways();
  ir::verify(graph);
  std::vector<std::vector<std::int32_t>> memory{{0, 0, 0}, {0, 0}}, taken(2);
  StepContext step;
  step.feed = [](int input, void* to) {
    const float floats[] = {1.5F, -2, 7};
    const std::int32_t integers[] = {40, -1};
    if (input == 0) std::memcpy(to, floats, sizeof(floats));
    if (input == 1) std::memcpy(to, integers, sizeof(integers));
  };
  step.take = [&](int output, const void* from) {
    auto& values = taken.at(static_cast<std::size_t>(output));
    values.resize(output == 0 ? 2 : 3);
    std::memcpy(values.data(), from, values.size() * sizeof(std::int32_t));
  };
  for (const ir::Op& op : graph.ops) {
    const std::vector<const ir::Layout*> given(op.inputs.size(), nullptr);
    const Selection selection = backend.select(graph, op, given);
    for (const ir::Layout& layout : selection.inputs) EXPECT_TRUE(layout.is_plain());
    for (const ir::Layout& layout : selection.outputs) EXPECT_TRUE(layout.is_plain());
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const ir::TensorId id : op.inputs) in.push_back(memory[static_cast<std::size_t>(id)].data());
    for (const ir::TensorId id : op.outputs) out.push_back(memory[static_cast<std::size_t>(id)].data());
    selection.kernel->run({in, out, nullptr, &step});
  }
  EXPECT_EQ(taken[0], (std::vector<std::int32_t>{40, -1}));
  EXPECT_EQ(taken[1], memory[0]);
  EXPECT_NE(memory[0][0], 0);
}

TEST(Ports, ValuesComeInAndGoOutInTheReferenceBackend) {
  expect_through(*make_reference_backend());
}

TEST(Ports, ValuesComeInAndGoOutInTheFastBackend) {
  expect_through(*make_cpu_backend());
}

}  // namespace
}  // namespace penstock::kernels
