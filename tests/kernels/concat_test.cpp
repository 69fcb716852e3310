#include <gtest/gtest.h>

#include "ir/graph.h"
#include "kernels/cpu/memory_layout.h"
#include "kernels/kernel.h"

namespace penstock::kernels::cpu {
namespace {

/// What the fast backend chooses for two tensors of eight channels that are joined.
Selection joined(dnnl::memory::format_tag tag) {
  ir::Graph graph;
  const ir::Shape part{2, 8, 3, 5};
  const ir::TensorId a = graph.add_tensor("a", ir::DType::f32, part, ir::Role::activation);
  const ir::TensorId b = graph.add_tensor("b", ir::DType::f32, part, ir::Role::activation);
  const ir::TensorId y = graph.add_tensor("y", ir::DType::f32, {2, 16, 3, 5}, ir::Role::activation);
  const ir::Op op{ir::OpKind::concat, ir::Phase::forward, "join", {a, b}, {y}, ir::AxisAttrs{1}};
  const Dims dims{2, 8, 3, 5};
  const ir::Layout layout = make_layout({dims, dnnl::memory::data_type::f32, tag}, plain_desc(dims));
  const std::vector<const ir::Layout*> given{&layout, &layout};
  return make_cpu_backend()->select(graph, op, given);
}

/// Eight channels lie alike in both, but what is joined of them does not: blocks stand one behind the other,
/// where channels-last has a pixel's sixteen channels side by side.
TEST(Concat, OnlyBlocksOfChannelsAreJoinedAsBlocks) {
  EXPECT_FALSE(joined(dnnl::memory::format_tag::aBcd8b).outputs[0].is_plain());
  EXPECT_TRUE(joined(dnnl::memory::format_tag::acdb).outputs[0].is_plain());
}

}  // namespace
}  // namespace penstock::kernels::cpu
