#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "lower/lower.h"
#include "models/sliding.h"
#include "penstock/network.h"
#include "support/classifier_builder.h"

namespace penstock {
namespace {

using Builder = testing::ClassifierBuilder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Builder small_net() {
  return {"net", {2, 4, 9, 9}};
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
  EXPECT_EQ(graph.tensor(a.id).name, "conv1.relu");
  EXPECT_EQ(graph.tensor(b.id).name, "conv1.relu2");
}

TEST(Builder, LayersWithoutNamesAreCalledAfterWhatIsNamed) {
  Builder net = small_net();
  const Value x = net.conv("conv1", net.images(), 4, {.padding = {1}});
  net.name_layers("block.3");
  const Value a = net.relu(x);
  const Value b = net.relu(a);
  const Value c = net.relu(b, "mine");
  net.name_layers("");
  const Value d = net.relu(b);
  const ir::Graph graph = net.finish(net.linear("fc", net.flatten(net.global_avg_pool(net.add(c, d))), 3));
  EXPECT_EQ(graph.tensor(a.id).name, "block.3.relu");
  EXPECT_EQ(graph.tensor(b.id).name, "block.3.relu2");
  EXPECT_EQ(graph.tensor(c.id).name, "mine");
  EXPECT_EQ(graph.tensor(d.id).name, "block.3.relu2.relu");
}

TEST(Builder, EachDropoutHasItsOwnKey) {
  Builder net = small_net();
  const Value x = net.dropout(net.dropout(net.images(), 0.5F), 0.25F);
  const ir::Graph graph = net.finish(net.linear("fc", net.flatten(x), 3));
  EXPECT_NE(graph.ops[2].attrs_as<ir::DropoutAttrs>().key, graph.ops[3].attrs_as<ir::DropoutAttrs>().key);
}

TEST(Builder, AdaptivePoolingTakesTheCheapestWay) {
  const auto kinds = [](std::int64_t edge, std::int64_t size) {
    Builder net("net", {1, 2, edge, edge});
    const Value y = net.adaptive_avg_pool(net.images(), size, "pool");
    EXPECT_EQ(net.shape(y), (Extents{1, 2, size, size}));
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
  EXPECT_THROW(net.reshape(x, {-1, 5}), UserError);
  EXPECT_THROW(net.reshape(x, {-1, -1}), UserError);
  EXPECT_THROW(net.transpose(x, {0, 1, 1, 2}), UserError);
  EXPECT_THROW(net.dropout(x, 1.0F), UserError);
  EXPECT_THROW(net.init("missing.weight", {}), UserError);
  net.batch_norm("bn", x);
  EXPECT_THAT([&] { net.batch_norm("bn", x); },
              ThrowsMessage<UserError>(HasSubstr("two layers are called bn")));
  EXPECT_THAT([&] { net.finish(x); }, ThrowsMessage<UserError>(HasSubstr("labels")));
}

TEST(Builder, EveryLayerMakesASoundGraph) {
  Builder net("net", {2, 4, 8, 8});
  Value x =
      net.conv("conv", net.images(), 8, {.kernel = {3, 1}, .stride = {1, 2}, .padding = {1, 0}, .groups = 2});
  x = net.conv_transpose("up", x, 4, {.kernel = {3}, .stride = {2}, .padding = {1}, .output_padding = {1}});
  EXPECT_EQ(net.shape(x), (Extents{2, 4, 16, 8}));
  x = net.lrn(net.tanh(net.bias("bias", x)));
  x = net.multiply(x, net.softmax(x));
  x = net.crop(net.pad(x, {0, 0, 1, 1}, {0, 0, 1, 2}), {0, 0, 0, 1}, {0, 0, 2, 2});
  EXPECT_EQ(net.shape(x), (Extents{2, 4, 16, 8}));
  const std::vector<Value> parts = net.split(net.upsample(x, {1, 2}, true), {1, 3});
  x = net.avg_pool(net.max_pool(net.concat({parts[1], parts[0]}), {}),
                   {.kernel = {3}, .stride = {1}, .padding = {1}, .count_include_pad = false});
  EXPECT_EQ(net.shape(x), (Extents{2, 4, 8, 8}));
  x = net.layer_norm("ln", net.transpose(x, {0, 2, 3, 1}));
  x = net.matmul(x, x, {.transpose_b = true});
  EXPECT_EQ(net.shape(x), (Extents{2, 8, 8, 8}));
  ir::verify(net.finish(net.linear("fc", net.flatten(x), 3)));
}

TEST(Builder, ValuesAndTypesThatDoNotFitAreRefused) {
  Builder net = small_net();
  EXPECT_THAT([&] { net.relu(Value{}); }, ThrowsMessage<UserError>(HasSubstr("does not have")));
  EXPECT_THAT([&] { net.relu(Value{9999}); }, ThrowsMessage<UserError>(HasSubstr("does not have")));
  EXPECT_THAT([&] { net.relu(net.labels(), "r"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("layer r"), HasSubstr("may not be s32"))));
  EXPECT_THAT([&] { net.loss(net.images()); }, ThrowsMessage<UserError>(HasSubstr("one f32 number")));
  EXPECT_THAT([&] { net.NetworkBuilder::finish(); }, ThrowsMessage<UserError>(HasSubstr("no output")));
  net.parameter("w", {3});
  EXPECT_THAT([&] { net.buffer("w", {3}); }, ThrowsMessage<UserError>(HasSubstr("two parameters")));
  net.output("x", net.images());
  EXPECT_THAT([&] { net.output("x", net.images()); }, ThrowsMessage<UserError>(HasSubstr("two outputs")));
  EXPECT_THAT([&] { net.input("images", DType::u8, {1}); },
              ThrowsMessage<UserError>(HasSubstr("two inputs")));
  EXPECT_THROW(net.parameter("huge", {1 << 30, 1 << 30}), UserError);
  EXPECT_THROW(net.parameter("deep", {1, 1, 1, 1, 1, 1, 1}), UserError);
}

TEST(Builder, AParameterUsedTwiceIsOne) {
  NetworkBuilder net("tied");
  const Value x = net.input("x", DType::f32, {2, 3});
  const Value labels = net.input("labels", DType::s32, {2});
  const Value w = net.parameter("w", {3, 3}, Init::normal(0.1F));
  const Value h = net.relu(net.linear(x, w, {}));
  net.loss(net.cross_entropy(net.linear(h, w, net.parameter("b", {3})), labels));
  const Network network = net.finish();
  ASSERT_EQ(network.parameters().size(), 2U);
  EXPECT_EQ(network.parameters()[0].name, "w");
  ir::verify(lower::for_training(models::graph_of(network)));
}

TEST(Builder, ScopesNameWhatIsMadeInThem) {
  Builder net = small_net();
  Value x = net.images();
  {
    const NetworkBuilder::Scope outer(net, "layer1");
    const NetworkBuilder::Scope inner(net, "0");
    x = net.adaptive_avg_pool(net.relu(net.conv("conv", x, 4, {})), 6, "pool");
    net.init("conv.weight", Init::normal(0.5F));
  }
  const Network network = [&] {
    net.classifier(net.linear("fc", net.flatten(x), 3), net.labels());
    return static_cast<NetworkBuilder&>(net).finish();
  }();
  std::vector<std::string> names;
  for (const ParameterInfo& parameter : network.parameters()) names.push_back(parameter.name);
  EXPECT_THAT(names,
              ::testing::ElementsAre("layer1.0.conv.weight", "layer1.0.conv.bias", "fc.weight", "fc.bias"));
  const ir::Graph& graph = models::graph_of(network);
  EXPECT_EQ(graph.ops[4].name.text().rfind("layer1.0.pool", 0), 0U);
  EXPECT_EQ(graph.tensor(graph.carried[0].begin).init.value, 0.5F);
}

TEST(Builder, StatisticsOfANormUsedTwiceAreUpdatedInTurn) {
  Builder net = small_net();
  const Value gamma = net.parameter("g", {4}, Init::constant(1)), beta = net.parameter("b", {4});
  const Value mean = net.buffer("mean", {4}), variance = net.buffer("var", {4}, Init::constant(1));
  Value x = net.batch_norm(net.images(), gamma, beta, mean, variance, 1e-5F, 0.1F, "first");
  x = net.batch_norm(x, gamma, beta, mean, variance, 1e-5F, 0.1F, "second");
  const ir::Graph graph = net.finish(net.linear("fc", net.flatten(x), 3));
  ir::verify(graph);
  ir::verify(lower::for_evaluation(graph));
  EXPECT_EQ(graph.tensor(graph.carried[2].end).name, "second.running_mean'");
}

TEST(Builder, TransformersMakeASoundGraph) {
  NetworkBuilder net("text");
  const Value tokens = net.input("tokens", DType::s32, {2, 5});
  const Value labels = net.input("labels", DType::s32, {2, 5});
  const Value words = net.parameter("words", {11, 8}, Init::normal(0.02F));
  Value x = net.embedding(tokens, words, net.parameter("positions", {6, 8}));
  const Value qkv = net.linear(net.layer_norm("norm", x), net.parameter("qkv", {8, 16}), {}, true);
  x = net.add(x, net.attention(qkv, {.heads = 4, .kv_heads = 2, .causal = true, .dropout = 0.1F}));
  const auto normed = net.add_rms_norm(x, net.gate(Gate::silu, x, x), net.parameter("gamma", {8}));
  const Value q = net.rotary(normed.y, {.head_width = 4});
  const Value mask = net.input("mask", DType::u8, {2, 1, 1, 5});
  x = net.add(normed.sum, net.attention(q, q, normed.y, mask, {.heads = 2}));
  net.loss(net.linear_cross_entropy(x, words, labels, 0.1F));
  const Network network = net.finish();
  ir::verify(models::graph_of(network));
  ir::verify(lower::for_training(models::graph_of(network)));
  const ir::Graph evaluation = lower::for_evaluation(models::graph_of(network));
  ir::verify(evaluation);
  for (const ir::Op& op : evaluation.ops) {
    if (op.kind != ir::OpKind::attention) continue;
    EXPECT_EQ(op.attrs_as<ir::AttentionAttrs>().dropout, 0);
  }
  EXPECT_THROW(NetworkBuilder("x").attention(Value{}, {}), UserError);
}

TEST(NetworkInfo, ListsWhatTheNetworkHas) {
  const Network network = Network::model("lenet", {.batch = 4});
  EXPECT_EQ(network.name(), "lenet");
  EXPECT_TRUE(network.has_loss());
  ASSERT_EQ(network.inputs().size(), 2U);
  EXPECT_EQ(network.inputs()[0].shape, (Extents{4, 1, 28, 28}));
  EXPECT_EQ(network.inputs()[1].dtype, DType::s32);
  ASSERT_EQ(network.outputs().size(), 3U);
  EXPECT_FALSE(network.outputs()[0].evaluation_only);
  EXPECT_TRUE(network.outputs()[1].evaluation_only);
  EXPECT_EQ(network.parameters().size(), 10U);
}

TEST(NetworkInfo, FreezesByPattern) {
  const Network network = Network::model("lenet");
  const Network frozen = network.freeze("conv*.w*t");
  for (const ParameterInfo& parameter : frozen.parameters()) {
    EXPECT_EQ(parameter.trained, parameter.name != "conv1.weight" && parameter.name != "conv2.weight");
  }
  for (const ParameterInfo& parameter : network.parameters()) EXPECT_TRUE(parameter.trained);
  EXPECT_THAT([&] { network.freeze("cnv*"); }, ThrowsMessage<UserError>(HasSubstr("matches 'cnv*'")));
  EXPECT_THROW(frozen.freeze("conv1.weight"), UserError);
  EXPECT_NO_THROW(network.freeze("*"));
}

}  // namespace
}  // namespace penstock
