#include "models/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lower/lower.h"

namespace penstock::models {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

Builder small_net() {
  return {"net", {2, 4, 9, 9}, {}};
}

TEST(Builder, BatchNormUpdatesItsStatisticsInTraining) {
  Builder net = small_net();
  const Value y = net.batch_norm("bn", net.images(), 1e-3F, 0.2F);
  const ir::Graph graph = net.finish(net.linear("fc", net.flatten(net.global_avg_pool(y)), 3));
  ir::verify(graph);
  const ir::Op& update = graph.ops[4];
  ASSERT_EQ(update.kind, ir::OpKind::statistics_update);
  EXPECT_EQ(update.phase, ir::Phase::update);
  EXPECT_EQ(update.attrs_as<ir::StatisticsAttrs>().count, 2 * 9 * 9);
  EXPECT_FLOAT_EQ(update.attrs_as<ir::StatisticsAttrs>().momentum, 0.2F);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(graph.tensor(update.inputs[i]).storage, graph.tensor(update.outputs[i]).storage);
  }
  EXPECT_FLOAT_EQ(graph.ops[3].attrs_as<ir::NormAttrs>().epsilon, 1e-3F);
}

TEST(Builder, BatchNormReadsRunningStatisticsInEvaluation) {
  Builder net = small_net();
  const Value y = net.batch_norm("bn", net.images());
  const ir::Graph graph =
      lower::for_evaluation(net.finish(net.linear("fc", net.flatten(net.global_avg_pool(y)), 3)));
  ir::verify(graph);
  ASSERT_EQ(graph.ops[2].kind, ir::OpKind::batch_norm);
  EXPECT_EQ(graph.tensor(graph.ops[2].inputs[3]).name, "bn.running_mean");
  EXPECT_EQ(graph.tensor(graph.ops[2].inputs[4]).name, "bn.running_var");
}

TEST(Builder, LayersWithoutNamesAreCalledAfterTheirInput) {
  Builder net = small_net();
  const Value x = net.conv("conv1", net.images(), 4, {.padding = {1}});
  const Value a = net.relu(x);
  const Value b = net.relu(x);
  const ir::Graph graph = net.finish(net.linear("fc", net.flatten(net.global_avg_pool(net.add(a, b))), 3));
  EXPECT_EQ(graph.tensor(a).name, "conv1.relu");
  EXPECT_EQ(graph.tensor(b).name, "conv1.relu2");
}

TEST(Builder, EachDropoutHasItsOwnKey) {
  Builder net = small_net();
  const Value x = net.dropout(net.dropout(net.images(), 0.5F), 0.25F);
  const ir::Graph graph = net.finish(net.linear("fc", net.flatten(x), 3));
  EXPECT_NE(graph.ops[2].attrs_as<ir::DropoutAttrs>().key, graph.ops[3].attrs_as<ir::DropoutAttrs>().key);
}

TEST(Builder, AdaptivePoolingTakesTheCheapestWay) {
  const auto kinds = [](std::int64_t edge, std::int64_t size) {
    Builder net("net", {1, 2, edge, edge}, {});
    const Value y = net.adaptive_avg_pool(net.images(), size, "pool");
    EXPECT_EQ(net.shape(y), (ir::Shape{1, 2, size, size}));
    const ir::Graph graph = net.finish(net.linear("fc", net.flatten(y), 3));
    ir::verify(graph);
    std::vector<ir::OpKind> found;
    for (std::size_t i = 2; graph.ops[i].kind != ir::OpKind::reshape; ++i) found.push_back(graph.ops[i].kind);
    return found;
  };
  using Kinds = std::vector<ir::OpKind>;
  EXPECT_EQ(kinds(6, 6), Kinds{});
  EXPECT_EQ(kinds(12, 6), Kinds{ir::OpKind::avg_pool});
  EXPECT_EQ(kinds(13, 6), Kinds{ir::OpKind::avg_pool});  // windows of 3 with stride 2
  EXPECT_EQ(kinds(8, 7), Kinds{ir::OpKind::avg_pool});   // windows of 2 with stride 1
  EXPECT_EQ(kinds(2, 6), Kinds{ir::OpKind::upsample});
  EXPECT_EQ(kinds(4, 6).size(), 2U * (6 + 6 + 1));
  EXPECT_EQ(kinds(9, 7).size(), 2U * (7 + 7 + 1));
}

TEST(Builder, LayersThatDoNotFitNameThemselves) {
  Builder net = small_net();
  const Value x = net.images();
  EXPECT_THAT([&] { net.conv("big", x, 4, {.kernel = {11}}); },
              ThrowsMessage<TooSmallError>(
                  AllOf(HasSubstr("layer big (convolution 11x11"), HasSubstr("would get 9x9"))));
  EXPECT_THAT([&] { net.conv("grouped", x, 4, {.groups = 3}); },
              ThrowsMessage<UserError>(HasSubstr("layer grouped")));
  EXPECT_THAT(
      [&] {
        net.conv("kernel", x, 4, {.kernel = {3, 3, 3}});
      },
      ThrowsMessage<UserError>(HasSubstr("kernel has 3 values for the 2 spatial axes")));
  EXPECT_THAT([&] { net.conv("stride", x, 4, {.stride = {0}}); },
              ThrowsMessage<UserError>(HasSubstr("stride 0")));
  EXPECT_THROW(net.conv("none", x, 0, {}), UserError);
  EXPECT_THAT([&] { net.add(x, net.max_pool(x, {}), "sum"); },
              ThrowsMessage<UserError>(HasSubstr("layer sum")));
  EXPECT_THAT(
      [&] {
        net.concat({x, net.max_pool(x, {})}, 1, "cat");
      },
      ThrowsMessage<UserError>(HasSubstr("layer cat")));
  EXPECT_THROW(net.concat({}), UserError);
  EXPECT_THROW(net.split(x, {1, 2}), UserError);
  EXPECT_THROW(net.reshape(x, {2, 5}), UserError);
  EXPECT_THROW(net.transpose(x, {0, 1, 1, 2}), UserError);
  EXPECT_THROW(net.dropout(x, 1.0F), UserError);
  EXPECT_THROW(net.init("missing.weight", {}), UserError);
  net.batch_norm("bn", x);
  EXPECT_THAT([&] { net.batch_norm("bn", x); },
              ThrowsMessage<UserError>(HasSubstr("two layers are called bn")));
  EXPECT_THAT([&] { net.finish(x); }, ThrowsMessage<UserError>(HasSubstr("labels")));
}

TEST(Builder, EveryLayerMakesASoundGraph) {
  Builder net("net", {2, 4, 8, 8}, {});
  Value x =
      net.conv("conv", net.images(), 8, {.kernel = {3, 1}, .stride = {1, 2}, .padding = {1, 0}, .groups = 2});
  x = net.conv_transpose("up", x, 4, {.kernel = {3}, .stride = {2}, .padding = {1}, .output_padding = {1}});
  EXPECT_EQ(net.shape(x), (ir::Shape{2, 4, 16, 8}));
  x = net.lrn(net.activation(net.bias("bias", x), {ir::Activation::tanh}), {});
  x = net.multiply(x, net.softmax(x));
  x = net.crop(net.pad(x, {{0, 0, 1, 1}, {0, 0, 1, 2}}), {{0, 0, 0, 1}, {0, 0, 2, 2}});
  EXPECT_EQ(net.shape(x), (ir::Shape{2, 4, 16, 8}));
  const std::vector<Value> parts = net.split(net.upsample(x, {1, 2}, true), {1, 3});
  x = net.avg_pool(net.max_pool(net.concat({parts[1], parts[0]}), {}), {{3}, {1}, {1}, false});
  EXPECT_EQ(net.shape(x), (ir::Shape{2, 4, 8, 8}));
  x = net.layer_norm("ln", net.transpose(x, {0, 2, 3, 1}));
  x = net.matmul(x, x, {.transpose_b = true});
  EXPECT_EQ(net.shape(x), (ir::Shape{2, 8, 8, 8}));
  ir::verify(net.finish(net.linear("fc", net.flatten(x), 3)));
}

}  // namespace
}  // namespace penstock::models
