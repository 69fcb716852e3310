#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "lower/lower.h"
#include "models/network_graph.h"
#include "onnx/file_maker.h"
#include "onnx/model.h"
#include "onnx/onnx_import.h"
#include "support/plain_executable.h"
#include "support/simple_runner.h"

namespace penstock::onnx {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Floats = std::vector<float>;

class OnnxTest : public ::testing::Test {
 protected:
  OnnxTest() {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("onnx_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~OnnxTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name = "model.onnx") const { return (folder_ / name).string(); }
  ImportedModel made(const FileMaker& file, const ImportOptions& options = {},
                     std::int64_t opset = 17) const {
    file.write(path(), opset);
    return load(path(), options);
  }
  std::filesystem::path folder_;
};

Floats counted(std::size_t count, float step = 0.25F) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(static_cast<int>(i % 13) - 6) * step;
  return values;
}

/// What the network's outputs are on inputs of counted numbers, by the plain kernels.
std::map<std::string, Floats> evaluate(const ImportedModel& model) {
  const ir::Graph graph = lower::for_evaluation(models::graph_of(model.network()));
  ir::verify(graph);
  const auto backend = kernels::make_reference_backend();
  const lower::Executable executable = penstock::testing::plain_executable(graph, *backend);
  penstock::testing::SimpleRunner runner(executable, *backend);
  for (const ParameterInfo& parameter : model.network().parameters()) {
    std::int64_t count = 1;
    for (const std::int64_t extent : parameter.shape) count *= extent;
    Floats values(static_cast<std::size_t>(count));
    EXPECT_TRUE(model.has(parameter.name)) << parameter.name;
    model.read(parameter.name, 0, count, values.data());
    runner.set_state(parameter.name, values);
  }
  kernels::StepContext step;
  step.feed = [&](int input, void* to) {
    const ir::Tensor& tensor = graph.tensor(graph.inputs[static_cast<std::size_t>(input)].tensor);
    const Floats values = counted(static_cast<std::size_t>(tensor.shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (tensor.dtype == ir::DType::f32) {
        static_cast<float*>(to)[i] = values[i];
      } else {
        static_cast<std::int32_t*>(to)[i] = static_cast<std::int32_t>(i % 3);
      }
    }
  };
  runner.run(step);
  std::map<std::string, Floats> outputs;
  for (const ir::Port& port : graph.outputs) {
    const auto& bytes = runner.output(port.name);
    Floats values(bytes.size() / 4);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    outputs[port.name] = values;
  }
  return outputs;
}

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
  save(path(), path("out.onnx"),
       [](const std::string& name, std::int64_t begin, std::int64_t count, float* to) {
         if (name != "fc.b" && name != "half") return false;
         for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(10 * (begin + i) + 1);
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
  const auto doubled = [&](const std::string&, std::int64_t begin, std::int64_t count, float* to) {
    model.read("w", begin, count, to);
    for (std::int64_t i = 0; i < count; ++i) to[i] *= 2;
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
  EXPECT_THAT([&] { made(small_network(), {}, 8); }, ThrowsMessage<UserError>(HasSubstr("opset 8")));
  EXPECT_NO_THROW(made(small_network(), {}, 9));
  EXPECT_NO_THROW(made(small_network(), {}, 99));
}

}  // namespace
}  // namespace penstock::onnx
