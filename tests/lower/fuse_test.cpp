#include <gtest/gtest.h>

#include <algorithm>

#include "lower/count_ops.h"
#include "lower/lower.h"
#include "support/classifier_builder.h"

namespace penstock::testing {
namespace {

using ir::OpKind;
using Builder = ClassifierBuilder;

const ir::Op& last(const ir::Graph& graph, OpKind kind) {
  const auto found =
      std::find_if(graph.ops.rbegin(), graph.ops.rend(), [&](const ir::Op& op) { return op.kind == kind; });
  EXPECT_NE(found, graph.ops.rend());
  return *found;
}

ir::Graph finish(Builder& builder, Value x) {
  return builder.finish(builder.linear("fc", builder.flatten(x), 3));
}

TEST(Fuse, BatchNormTakesTheReluBehindIt) {
  Builder b("net", {2, 3, 8, 8});
  const ir::Graph fused = lower::fuse(finish(b, b.relu(b.batch_norm("bn", b.images()))));
  EXPECT_EQ(count(fused, OpKind::activation), 0);
  const ir::Op& norm = last(fused, OpKind::batch_norm);
  EXPECT_TRUE(norm.attrs_as<ir::NormAttrs>().relu);
  EXPECT_TRUE(norm.attrs_as<ir::NormAttrs>().mask);
  ASSERT_EQ(norm.outputs.size(), 2U);
  EXPECT_EQ(fused.tensor(norm.outputs[1]).role, ir::Role::workspace);
  EXPECT_NO_THROW(ir::verify(fused));
}

TEST(Fuse, BatchNormTakesTheReluWithACeilingBehindIt) {
  Builder b("net", {2, 3, 8, 8});
  const auto norm = [&](const char* name) { return b.batch_norm(name, b.images()); };
  const auto six = b.apply("relu6", {norm("bn1")});
  const auto sum = b.apply("hardtanh", {b.add(norm("bn2"), b.images())}, {0, 2});
  // Neither begins at 0 and is flat there.
  const auto other = b.add(b.apply("hardtanh", {norm("bn3")}), b.apply("clip", {norm("bn4")}, {0, 6}));
  const ir::Graph fused = lower::fuse(finish(b, b.add(b.add(six, sum), other)));
  std::vector<float> ceilings;
  for (const ir::Op& op : fused.ops) {
    if (op.kind == OpKind::batch_norm) ceilings.push_back(op.attrs_as<ir::NormAttrs>().ceiling);
  }
  std::sort(ceilings.begin(), ceilings.end());
  EXPECT_EQ(ceilings, (std::vector<float>{0, 0, 2, 6}));
  EXPECT_NO_THROW(ir::verify(fused));
}

TEST(Fuse, BatchNormTakesTheSiluBehindIt) {
  Builder b("net", {2, 3, 8, 8});
  const auto fused_one = b.apply("silu", {b.batch_norm("bn1", b.images())});
  const auto behind_relu = b.apply("silu", {b.relu(b.batch_norm("bn2", b.images()))});
  const auto twice_read = b.batch_norm("bn3", b.images());
  const auto beside = b.multiply(twice_read, b.apply("silu", {twice_read}));
  const ir::Graph fused = lower::fuse(finish(b, b.add(b.add(fused_one, behind_relu), beside)));
  std::vector<bool> silu;
  for (const ir::Op& op : fused.ops) {
    if (op.kind == OpKind::batch_norm) silu.push_back(op.attrs_as<ir::NormAttrs>().silu);
  }
  EXPECT_EQ(std::count(silu.begin(), silu.end(), true), 1);
  EXPECT_NO_THROW(ir::verify(fused));
}

TEST(Fuse, EvaluationKeepsNoMask) {
  Builder b("net", {2, 3, 8, 8});
  const ir::Graph fused =
      lower::fuse(lower::for_evaluation(finish(b, b.relu(b.batch_norm("bn", b.images())))));
  const ir::Op& norm = last(fused, OpKind::batch_norm);
  EXPECT_TRUE(norm.attrs_as<ir::NormAttrs>().relu);
  EXPECT_FALSE(norm.attrs_as<ir::NormAttrs>().mask);
  EXPECT_EQ(norm.outputs.size(), 1U);
  EXPECT_NO_THROW(ir::verify(fused));
}

TEST(Fuse, BatchNormTakesTheAdditionAndTheRelu) {
  Builder b("net", {2, 3, 8, 8});
  const auto main = b.batch_norm("bn1", b.images());
  const auto shortcut = b.batch_norm("bn2", b.images());
  const ir::Graph fused = lower::fuse(finish(b, b.relu(b.add(main, shortcut))));
  EXPECT_EQ(count(fused, OpKind::add), 0);
  EXPECT_EQ(count(fused, OpKind::batch_norm), 2);
  const ir::Op& norm = last(fused, OpKind::batch_norm);
  EXPECT_TRUE(norm.attrs_as<ir::NormAttrs>().add);
  ASSERT_EQ(norm.inputs.size(), 6U);
  EXPECT_EQ(fused.tensor(norm.inputs[5]).producer,
            std::find_if(fused.ops.begin(), fused.ops.end(), [](const ir::Op& op) {
              return op.kind == OpKind::batch_norm;
            }) - fused.ops.begin());
  EXPECT_NO_THROW(ir::verify(fused));
}

TEST(Fuse, AnIntermediateWithAnotherUseStays) {
  Builder b("net", {2, 3, 8, 8});
  const auto norm = b.batch_norm("bn", b.images());
  const ir::Graph fused = lower::fuse(finish(b, b.multiply(norm, b.relu(norm))));
  EXPECT_EQ(count(fused, OpKind::activation), 1);
  EXPECT_FALSE(last(fused, OpKind::batch_norm).attrs_as<ir::NormAttrs>().relu);
  EXPECT_NO_THROW(ir::verify(fused));
}

TEST(Fuse, ConvolutionAndLinearTakeTheRelu) {
  Builder b("net", {2, 3, 8, 8});
  const auto x = b.relu(b.conv("conv", b.images(), 4, {}));
  const auto h = b.relu(b.linear("hidden", b.flatten(x), 5));
  const ir::Graph fused = lower::fuse(b.finish(b.linear("fc", h, 3)));
  EXPECT_EQ(count(fused, OpKind::activation), 0);
  EXPECT_TRUE(last(fused, OpKind::conv).attrs_as<ir::ConvAttrs>().relu);
  EXPECT_FALSE(last(fused, OpKind::linear).attrs_as<ir::LinearAttrs>().relu);
  EXPECT_NO_THROW(ir::verify(fused));
}

TEST(Fuse, OtherActivationsStay) {
  Builder b("net", {2, 3, 8, 8});
  const auto x = b.sigmoid(b.conv("conv", b.images(), 4, {}));
  EXPECT_EQ(count(lower::fuse(finish(b, x)), OpKind::activation), 1);
}

}  // namespace
}  // namespace penstock::testing
