#include <gtest/gtest.h>

#include <algorithm>

#include "lower/count_ops.h"
#include "lower/lower.h"
#include "support/classifier_builder.h"

namespace penstock::testing {
namespace {

using ir::OpKind;
using Builder = ClassifierBuilder;

ir::Graph fused(Builder& builder, Value x) {
  ir::Graph graph = lower::fuse(builder.finish(builder.linear("fc", builder.flatten(x), 3)));
  EXPECT_NO_THROW(ir::verify(graph));
  return graph;
}

TEST(FusePrograms, AChainBecomesOneOp) {
  Builder b("net", {2, 8, 4, 4});
  const auto silu = b.apply("silu", {b.images()});
  const auto scaled = b.apply("mul_scalar", {silu}, {0.5F});
  const ir::Graph graph = fused(b, b.apply("add", {scaled, b.images()}));
  ASSERT_EQ(count(graph, OpKind::pointwise), 1);
  for (const ir::Op& op : graph.ops) {
    if (op.kind != OpKind::pointwise) continue;
    EXPECT_EQ(op.inputs.size(), 1U);
  }
}

TEST(FusePrograms, TakesOlderOpsBesideAProgram) {
  Builder b("net", {2, 8, 4, 4});
  const auto scaled = b.apply("mul_scalar", {b.tanh(b.images())}, {0.5F});
  const ir::Graph graph = fused(b, b.add(scaled, b.images()));
  EXPECT_EQ(count(graph, OpKind::pointwise), 1);
  EXPECT_EQ(count(graph, OpKind::add) + count(graph, OpKind::activation), 0);
}

TEST(FusePrograms, NetworksWithoutProgramsStayAsTheyAre) {
  Builder b("net", {2, 8, 4, 4});
  const auto bent = b.tanh(b.images());
  const ir::Graph graph = fused(b, b.multiply(b.add(bent, b.images()), b.images()));
  EXPECT_EQ(count(graph, OpKind::pointwise), 0);
  EXPECT_EQ(count(graph, OpKind::add), 1);
}

TEST(FusePrograms, WhatTwoOpsReadStays) {
  Builder b("net", {2, 8, 4, 4});
  const auto silu = b.apply("silu", {b.images()});
  const ir::Graph graph = fused(b, b.apply("add", {b.apply("exp", {silu}), b.batch_norm("bn", silu)}));
  EXPECT_EQ(count(graph, OpKind::pointwise), 2);
}

TEST(FusePrograms, WhatIsRepeatedIsComputedOnce) {
  Builder b("net", {2, 8, 4, 4});
  const auto gate = b.apply("sigmoid", {b.global_avg_pool(b.images())});
  const ir::Graph graph = fused(b, b.apply("mul", {b.images(), gate}));
  EXPECT_EQ(count(graph, OpKind::pointwise), 2);
}

TEST(FusePrograms, StopsBeforeAKernelHoldsTooMuch) {
  Builder b("net", {2, 8, 4, 4});
  auto x = b.images();
  for (int i = 0; i < 40; ++i) x = b.apply("mish", {x});
  const ir::Graph graph = fused(b, x);
  EXPECT_GT(count(graph, OpKind::pointwise), 1);
  EXPECT_LT(count(graph, OpKind::pointwise), 40);
}

}  // namespace
}  // namespace penstock::testing
