#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "lower/lower.h"
#include "models/network_graph.h"
#include "models/text_catalog.h"
#include "penstock/network.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

ir::Graph build_model(const std::string& name, const ModelOptions& options) {
  return models::graph_of(Network::model(name, options));
}

std::int64_t parameter_count(const ir::Graph& graph) {
  std::int64_t count = 0;
  for (const ir::Carried& state : graph.carried) {
    const ir::Tensor& tensor = graph.tensor(state.begin);
    if (tensor.role == ir::Role::parameter) count += tensor.shape.elements();
  }
  return count;
}

std::size_t count_ops(const ir::Graph& graph, ir::OpKind kind) {
  std::size_t count = 0;
  for (const ir::Op& op : graph.ops) count += op.kind == kind ? 1 : 0;
  return count;
}

const ir::Shape& input(const ir::Graph& graph, const char* name) {
  return graph.tensor(graph.inputs.at(static_cast<std::size_t>(graph.find_input(name))).tensor).shape;
}

const ir::Shape& output(const ir::Graph& graph, const char* name) {
  return graph.tensor(graph.outputs.at(static_cast<std::size_t>(graph.find_output(name))).tensor).shape;
}

struct Expected {
  const char* name;
  std::int64_t parameters;
};

class ModelTest : public ::testing::TestWithParam<Expected> {};

TEST_P(ModelTest, HasTheKnownNumberOfParameters) {
  const ir::Graph graph = build_model(GetParam().name, {.batch = 2});
  EXPECT_EQ(parameter_count(graph), GetParam().parameters);
  EXPECT_EQ(graph.name, GetParam().name);
}

TEST_P(ModelTest, HasTheSameStateInTrainingAndEvaluation) {
  const ir::Graph training = lower::for_training(build_model(GetParam().name, {.batch = 2}));
  const ir::Graph evaluation = lower::for_evaluation(build_model(GetParam().name, {.batch = 2}));
  ASSERT_EQ(training.carried.size(), evaluation.carried.size());
  std::set<std::string> names;
  for (std::size_t i = 0; i < training.carried.size(); ++i) {
    const ir::Tensor& tensor = training.tensor(training.carried[i].begin);
    EXPECT_EQ(tensor.name, evaluation.tensor(evaluation.carried[i].begin).name);
    EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name.text();
    EXPECT_EQ(evaluation.carried[i].begin, evaluation.carried[i].end);
    const bool updated = training.carried[i].begin != training.carried[i].end;
    EXPECT_EQ(updated, tensor.role == ir::Role::buffer) << tensor.name.text();
  }
  EXPECT_EQ(count_ops(evaluation, ir::OpKind::dropout), 0U);
  EXPECT_EQ(count_ops(evaluation, ir::OpKind::batch_norm_statistics), 0U);
  EXPECT_EQ(count_ops(evaluation, ir::OpKind::count_correct), 1U);
  EXPECT_EQ(count_ops(training, ir::OpKind::count_correct), 0U);
  const auto correct = static_cast<std::size_t>(training.find_output("correct"));
  EXPECT_NE(evaluation.outputs[correct].tensor, ir::kNone);
  EXPECT_EQ(training.outputs[correct].tensor, ir::kNone);
}

TEST_P(ModelTest, TakesChannelsClassesAndWidth) {
  const ModelInfo info = find_model(GetParam().name);
  const ModelOptions options{
      .batch = 3, .channels = 5, .image_size = info.image_size, .classes = 7, .width = 0.0625};
  const ir::Graph graph = build_model(info.name, options);
  EXPECT_EQ(input(graph, "images")[1], 5);
  EXPECT_EQ(output(graph, "logits")[0], 3);
  EXPECT_EQ(output(graph, "logits")[1], 7);
  EXPECT_LT(parameter_count(graph), GetParam().parameters / 10);
}

INSTANTIATE_TEST_SUITE_P(
    All, ModelTest,
    ::testing::Values(Expected{"lenet", 61'706}, Expected{"alexnet", 61'100'840},
                      Expected{"vgg16", 138'357'544}, Expected{"vgg19", 143'667'240},
                      Expected{"resnet18", 11'689'512}, Expected{"resnet34", 21'797'672},
                      Expected{"resnet50", 25'557'032}, Expected{"resnet101", 44'549'160},
                      Expected{"resnet152", 60'192'808}, Expected{"densenet121", 7'978'856},
                      Expected{"inception-v4", 42'679'816}, Expected{"vit_b_16", 86'567'656},
                      Expected{"vit_l_16", 304'326'632}),
    [](const auto& test) {
      std::string name = test.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(Models, EveryListedModelBuilds) {
  for (const ModelInfo& info : list_models()) {
    const std::string name = info.name == "resnet-N" ? "resnet-137" : info.name;
    const ir::Graph graph = build_model(name, {.batch = 2});
    ir::verify(graph);
    ir::verify(lower::for_training(graph));
    ir::verify(lower::for_evaluation(graph));
    if (const auto text = models::find_text_info(name)) {
      EXPECT_EQ(input(graph, "tokens"), (ir::Shape{2, text->positions})) << name;
      continue;
    }
    const ir::Shape& images = input(graph, "images");
    EXPECT_EQ(images.rank(), info.volumetric ? 5U : 4U) << name;
    EXPECT_EQ(images[2], info.image_size) << name;
    const ir::Shape& logits = output(graph, "logits");
    EXPECT_EQ(logits.rank(), info.per_pixel ? images.rank() : 2U) << name;
    EXPECT_EQ(logits[1], info.classes) << name;
  }
}

TEST(Models, DeepResnetHasAsManyLayersAsItsNameSays) {
  for (const std::int64_t depth : {137, 1001, 2501}) {
    const ir::Graph graph = build_model("resnet-" + std::to_string(depth), {.batch = 1});
    std::int64_t layers = 0;
    for (const ir::Op& op : graph.ops) {
      const bool projection = op.name.text().find("downsample") != std::string::npos;
      if (op.kind == ir::OpKind::linear || (op.kind == ir::OpKind::conv && !projection)) ++layers;
    }
    EXPECT_EQ(layers, depth);
  }
}

TEST(Models, UnreachableDepthNamesTheNearestTwo) {
  EXPECT_THAT([] { find_model("resnet-1000"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("resnet-998 "), HasSubstr("resnet-1001"))));
  EXPECT_THAT([] { find_model("resnet-50"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("resnet-137 "), HasSubstr("resnet-140"))));
  EXPECT_THAT([] { find_model("resnet-99999999999999999999"); },
              ThrowsMessage<UserError>(HasSubstr("from 137 to")));
  EXPECT_EQ(find_model("resnet-1001").name, "resnet-1001");
}

TEST(Models, UnknownNameSuggestsTheClosest) {
  EXPECT_THAT([] { find_model("resnet51"); }, ThrowsMessage<UserError>(HasSubstr("resnet50")));
  EXPECT_THAT([] { find_model("inceptionv4"); }, ThrowsMessage<UserError>(HasSubstr("inception-v4")));
  EXPECT_THROW(find_model("resnet-N"), UserError);
  EXPECT_THROW(find_model("resnet-"), UserError);
  EXPECT_THROW(find_model(""), UserError);
}

TEST(Models, TooSmallImageNamesLayerAndSmallestSize) {
  EXPECT_THAT([] { build_model("alexnet", {.batch = 1, .image_size = 16}); },
              ThrowsMessage<UserError>(
                  AllOf(HasSubstr("image 16x16 is too small for alexnet: layer features.5 (max pool "
                                  "3x3, stride 2, padding 0) would get 1x1"),
                        HasSubstr("use 63x63 or larger"))));
  EXPECT_NO_THROW(build_model("alexnet", {.batch = 1, .image_size = 63}));
  EXPECT_THROW(build_model("alexnet", {.batch = 1, .image_size = 62}), UserError);
  EXPECT_THAT([] { build_model("vgg16", {.batch = 1, .image_size = 31}); },
              ThrowsMessage<UserError>(HasSubstr("use 32x32 or larger")));
  EXPECT_THAT([] { build_model("inception-v4", {.batch = 1, .image_size = 74}); },
              ThrowsMessage<UserError>(HasSubstr("use 75x75 or larger")));
}

TEST(Models, UnetNeedsSizesThatHalve) {
  EXPECT_THAT([] { build_model("unet", {.batch = 1, .image_size = 100}); },
              ThrowsMessage<UserError>(HasSubstr("multiple of 16, 96 or 112")));
  EXPECT_THROW(build_model("unet", {.batch = 1, .image_size = 8}), UserError);
  EXPECT_THROW(build_model("unet3d", {.batch = 1, .image_size = 30}), UserError);
}

TEST(Models, OptionsOutOfRangeAreRefused) {
  EXPECT_THROW(build_model("lenet", {.batch = 0}), UserError);
  EXPECT_THROW(build_model("lenet", {.batch = -1}), UserError);
  EXPECT_THROW(build_model("lenet", {.batch = 1, .channels = -3}), UserError);
  EXPECT_THROW(build_model("lenet", {.batch = 1, .image_size = -28}), UserError);
  EXPECT_THROW(build_model("lenet", {.batch = 1, .classes = 1}), UserError);
  EXPECT_THROW(build_model("lenet", {.batch = 1, .image_size = std::int64_t{1} << 62}), UserError);
  EXPECT_THAT([] { build_model("unet3d", {.batch = 1 << 20, .image_size = 1 << 20}); },
              ThrowsMessage<UserError>(HasSubstr("too large")));
}

TEST(Models, BatchNormOfOneValueIsRefusedInTrainingOnly) {
  const ir::Graph one = build_model("resnet18", {.batch = 1, .channels = 1, .image_size = 28});
  EXPECT_THAT(
      [&] { lower::for_training(one); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("layer layer4.0.bn1 "), HasSubstr("batch of at least 2"))));
  EXPECT_NO_THROW(lower::for_evaluation(one));
  EXPECT_NO_THROW(
      lower::for_training(build_model("resnet18", {.batch = 2, .channels = 1, .image_size = 28})));
}

TEST(Models, StartFromTorchvisionsDistributions) {
  const auto init_of = [](const ir::Graph& graph, const std::string& name) {
    for (const ir::Tensor& tensor : graph.tensors) {
      if (tensor.name == name) return tensor.init;
    }
    ADD_FAILURE() << "no " << name;
    return ir::Init{};
  };
  const ir::Graph resnet = build_model("resnet50", {.batch = 2});
  EXPECT_EQ(init_of(resnet, "layer1.0.conv2.weight").kind, ir::Init::Kind::normal);
  EXPECT_FLOAT_EQ(init_of(resnet, "layer1.0.conv2.weight").value, 0.058925565F);  // sqrt(2 / (64 * 9))
  EXPECT_EQ(init_of(resnet, "bn1.weight").value, 1);
  EXPECT_EQ(init_of(resnet, "bn1.bias").value, 0);
  EXPECT_EQ(init_of(resnet, "bn1.running_var").value, 1);
  EXPECT_EQ(init_of(resnet, "fc.weight").kind, ir::Init::Kind::uniform);
  EXPECT_FLOAT_EQ(init_of(resnet, "fc.bias").value, 0.022097087F);  // 1 / sqrt(2048)
  const ir::Graph densenet = build_model("densenet121", {.batch = 2});
  EXPECT_FLOAT_EQ(init_of(densenet, "features.conv0.weight").value, 0.11664237F);  // sqrt(2 / (3 * 49))
  EXPECT_EQ(init_of(densenet, "classifier.bias").value, 0);
  const ir::Graph vgg = build_model("vgg16", {.batch = 2});
  EXPECT_FLOAT_EQ(init_of(vgg, "classifier.0.weight").value, 0.01F);
  EXPECT_EQ(init_of(vgg, "features.0.bias").value, 0);
}

TEST(Models, DropoutCanBeLeftOut) {
  EXPECT_EQ(count_ops(build_model("vgg16", {.batch = 1}), ir::OpKind::dropout), 2U);
  EXPECT_EQ(count_ops(build_model("vgg16", {.batch = 1, .dropout = false}), ir::OpKind::dropout), 0U);
}

}  // namespace
}  // namespace penstock
