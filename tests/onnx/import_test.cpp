#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "lower/lower.h"
#include "models/network_graph.h"
#include "onnx/evaluate.h"
#include "onnx/file_maker.h"
#include "onnx/model.h"
#include "onnx/onnx_import.h"

namespace penstock::onnx {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

FileMaker small_network() {
  FileMaker file;
  file.input("x", {-1, 2, 4, 4})
      .weights(floats("conv.w", {3, 2, 3, 3}, counted(54)))
      .weights(floats("conv.b", {3}, {0.5F, -1, 2}))
      .weights(floats("fc.w", {4, 12}, counted(48, 0.125F)))
      .weights(floats("fc.b", {4}, {1, 2, 3, 4}))
      .node("Conv", {"x", "conv.w", "conv.b"}, {"c"}, {ints_attribute("pads", {1, 1, 1, 1})})
      .node("Relu", {"c"}, {"r"})
      .node("MaxPool", {"r"}, {"p"},
            {ints_attribute("kernel_shape", {2, 2}), ints_attribute("strides", {2, 2})})
      .node("Flatten", {"p"}, {"f"})
      .node("Gemm", {"f", "fc.w", "fc.b"}, {"y"}, {int_attribute("transB", 1)})
      .output("y");
  return file;
}

TEST_F(OnnxTest, GivesWhatTheSameNetworkOfTheBuilderGives) {
  const ImportedModel imported = made(small_network(), {.batch = 3});
  EXPECT_EQ(imported.network().name(), "made");
  NetworkBuilder net("same");
  Value x = net.input("x", DType::f32, {3, 2, 4, 4});
  const Value w = net.parameter("conv.w", {3, 2, 3, 3}), b = net.parameter("conv.b", {3});
  x = net.max_pool(net.relu(net.conv(x, w, b, {.padding = {1}})), {});
  const Value fw = net.parameter("fc.w", {4, 12}), fb = net.parameter("fc.b", {4});
  net.output("y", net.linear(net.flatten(x), fw, fb));
  const ImportedModel same(net.finish(), std::make_shared<const Model>(read_model(path())), {});
  const Floats have = evaluate(imported)["y"];
  EXPECT_EQ(have.size(), 12U);
  EXPECT_EQ(have, evaluate(same)["y"]);
}

/// The numbers of an .npy file of float32: what is behind its header of 128 bytes.
Floats read_npy(const std::string& name) {
  std::ifstream file(PENSTOCK_SOURCE_DIR "/tests/onnx/files/" + name, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  Floats values((bytes.size() - 128) / 4);
  std::memcpy(values.data(), bytes.data() + 128, values.size() * 4);
  return values;
}

TEST_F(OnnxTest, GivesWhatTheReferenceEvaluatorGives) {
  for (const char* name : {"small.onnx", "external.onnx"}) {
    const ImportedModel model =
        load(std::string(PENSTOCK_SOURCE_DIR "/tests/onnx/files/") + name, {.batch = 4});
    const Floats have = evaluate(model, {{"images", read_npy("small_input.npy")}})["logits"];
    const Floats want = read_npy("small_output.npy");
    ASSERT_EQ(have.size(), want.size());
    for (std::size_t i = 0; i < have.size(); ++i) EXPECT_NEAR(have[i], want[i], 1e-5) << name << " " << i;
  }
}

TEST_F(OnnxTest, TrainsWithALossAndFrozenParameters) {
  const ImportedModel model =
      made(small_network(), {.batch = 2, .loss = "cross_entropy", .freeze = {"conv.*"}});
  for (const ParameterInfo& parameter : model.network().parameters())
    EXPECT_EQ(parameter.trained, parameter.name.rfind("fc.", 0) == 0);
  EXPECT_TRUE(model.network().has_loss());
  ASSERT_EQ(model.network().inputs().size(), 2U);
  EXPECT_EQ(model.network().inputs()[1].name, "labels");
  ir::verify(lower::for_training(models::graph_of(model.network())));
}

TEST_F(OnnxTest, FoldsShapeArithmetic) {
  FileMaker file;
  file.input("x", {-1, 6, 2})
      .weights(integers("zero", {0}))
      .weights(integers("rest", {-1, 3}))
      .node("Shape", {"x"}, {"shape"})
      .node("Gather", {"shape", "zero"}, {"batch"}, {int_attribute("axis", 0)})
      .node("Concat", {"batch", "rest"}, {"target"}, {int_attribute("axis", 0)})
      .node("Reshape", {"x", "target"}, {"y"})
      .output("y");
  EXPECT_EQ(made(file, {.batch = 5}).network().outputs()[0].shape, (Extents{5, 4, 3}));
}

TEST_F(OnnxTest, AFileForAnotherBatchTakesAnyBatch) {
  FileMaker file;
  file.input("x", {1, 6})
      .weights(integers("shape", {1, 2, 3}))
      .node("Reshape", {"x", "shape"}, {"y"})
      .output("y");
  EXPECT_EQ(made(file, {.batch = 4}).network().outputs()[0].shape, (Extents{4, 2, 3}));
  EXPECT_EQ(made(file).network().outputs()[0].shape, (Extents{1, 2, 3}));
}

TEST_F(OnnxTest, BatchNormOfAnInferenceExportTrainsAsBatchNorm) {
  FileMaker file;
  file.input("x", {-1, 2, 3, 3});
  for (const char* name : {"g", "b", "m", "v"}) file.weights(floats(name, {2}, {1, 2}));
  file.node("BatchNormalization", {"x", "g", "b", "m", "v"}, {"y"}, {float_attribute("momentum", 0.75F)})
      .node("GlobalAveragePool", {"y"}, {"p"})
      .node("Flatten", {"p"}, {"f"})
      .output("f");
  const ImportedModel model = made(file, {.batch = 2, .loss = "cross_entropy"});
  const ir::Graph graph = lower::for_training(models::graph_of(model.network()));
  const auto update = std::find_if(graph.ops.begin(), graph.ops.end(),
                                   [](const ir::Op& op) { return op.kind == ir::OpKind::statistics_update; });
  ASSERT_NE(update, graph.ops.end());
  EXPECT_FLOAT_EQ(update->attrs_as<ir::StatisticsAttrs>().momentum, 0.25F);
  std::vector<bool> trained;
  for (const ParameterInfo& parameter : model.network().parameters()) trained.push_back(parameter.trained);
  EXPECT_THAT(trained, ElementsAre(true, true, false, false));
}

TEST_F(OnnxTest, NodesInAnyOrderAndUnneededOnesAreNoProblem) {
  FileMaker file;
  file.input("x", {2, 3})
      .node("Relu", {"t"}, {"y"})
      .node("NotAnOp", {"x"}, {"unused"})
      .node("Tanh", {"x"}, {"t"})
      .output("y");
  EXPECT_EQ(evaluate(made(file))["y"].size(), 6U);
}

TEST_F(OnnxTest, SavesTrainedWeightsIntoTheSameModel) {
  FileMaker file = small_network();
  // 1.5 and -2 in half precision, which nothing reads.
  file.weights(tensor("half", {2}, 10, std::string("\x00\x3E\x00\xC0", 4)));
  file.write(path());
  save(path(), path("out.onnx"), [](const std::string& name, const auto& use) {
    if (name != "fc.b" && name != "half") return false;
    if (use) use(Floats{1, 11, 21, 31});
    return true;
  });
  const ImportedModel model = load(path("out.onnx"));
  Floats bias(4), weight(3), half(2);
  model.read("fc.b", 0, 4, bias.data());
  model.read("conv.b", 0, 3, weight.data());
  model.read("half", 0, 2, half.data());
  EXPECT_THAT(bias, ElementsAre(1, 11, 21, 31));
  EXPECT_THAT(weight, ElementsAre(0.5F, -1, 2));
  EXPECT_THAT(half, ElementsAre(1, 11));
  EXPECT_EQ(std::filesystem::file_size(path()), std::filesystem::file_size(path("out.onnx")));
}

TEST_F(OnnxTest, ExternalDataIsReadAndSavedBesideTheModel) {
  std::ofstream(path("data.bin"), std::ios::binary) << "skip" << raw({1, 2, 3, 4, 5, 6});
  FileMaker file;
  file.input("x", {2, 3})
      .weights(external("w", {2, 3}, "data.bin", 4))
      .node("Gemm", {"x", "w"}, {"y"}, {int_attribute("transB", 1)})
      .output("y");
  const ImportedModel model = made(file);
  Floats part(3);
  model.read("w", 2, 3, part.data());
  EXPECT_THAT(part, ElementsAre(3, 4, 5));
  const auto doubled = [&](const std::string&, const auto& use) {
    if (use) use(Floats{2, 4, 6, 8, 10, 12});
    return true;
  };
  EXPECT_THAT([&] { save(path(), path("out.onnx"), doubled); },
              ThrowsMessage<UserError>(HasSubstr("another folder")));
  std::filesystem::create_directories(folder_ / "out");
  save(path(), path("out/model.onnx"), doubled);
  const ImportedModel saved = load(path("out/model.onnx"));
  saved.read("w", 2, 3, part.data());
  EXPECT_THAT(part, ElementsAre(6, 8, 10));
  model.read("w", 2, 3, part.data());
  EXPECT_THAT(part, ElementsAre(3, 4, 5));
}

TEST_F(OnnxTest, AnUnsupportedOpIsRefusedByName) {
  FileMaker file;
  file.input("x", {2, 3}).node("Wobble", {"x"}, {"y"}).output("y");
  EXPECT_THAT([&] { made(file); },
              ThrowsMessage<UserError>(::testing::AllOf(HasSubstr("node 'y' (Wobble) is not supported"),
                                                        HasSubstr("BatchNormalization, "))));
  EXPECT_THAT([&] { made(small_network(), {}, 5); }, ThrowsMessage<UserError>(HasSubstr("opset 5")));
  EXPECT_NO_THROW(made(small_network(), {}, 9));
  EXPECT_NO_THROW(made(small_network(), {}, 99));
}

}  // namespace
}  // namespace penstock::onnx
