#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "autodiff/backward.h"
#include "lower/lower.h"
#include "models/network_graph.h"
#include "session/optimizer.h"
#include "support/hashed_values.h"
#include "support/plain_executable.h"
#include "support/simple_runner.h"

namespace penstock::session {
namespace {

using nlohmann::json;
using testing::SimpleRunner;

constexpr double kTolerance = 1e-4;
constexpr std::size_t kSteps = 5;

/// The ways a graph becomes something that runs.
enum class Path : std::uint8_t { reference, lowered };

struct GoldenCase {
  const char* model;
  Path path;
};

json read_golden(const std::string& model) {
  std::ifstream file(fmt::format("{}/tests/golden/{}.json", PENSTOCK_SOURCE_DIR, model));
  return json::parse(file);
}

class GoldenTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  GoldenTest() : golden_(read_golden(GetParam().model)) {
    backend_ = lowered() ? kernels::make_cpu_backend() : kernels::make_reference_backend();
  }

  bool lowered() const { return GetParam().path == Path::lowered; }

  ir::Graph forward(bool training) const {
    const ModelOptions options{.batch = golden_["batch"],
                               .channels = golden_["channels"],
                               .image_size = golden_["image_size"],
                               .classes = golden_["classes"],
                               .width = golden_["width"],
                               .dropout = false};
    ir::Graph graph = models::graph_of(Network::model(GetParam().model, options));
    graph = training ? lower::for_training(std::move(graph)) : lower::for_evaluation(std::move(graph));
    return lowered() ? lower::fuse(graph) : graph;
  }

  lower::Executable executable(const ir::Graph& graph, const lower::Executable* fixed_state) {
    return lowered() ? lower::lower(graph, *backend_, {}, fixed_state)
                     : testing::plain_executable(graph, *backend_);
  }

  kernels::StepContext context(const ir::Graph& graph) const {
    const std::int64_t pixels = graph.tensor(graph.inputs[0].tensor).shape.elements();
    const std::int64_t labels = graph.tensor(graph.inputs[1].tensor).shape.elements();
    const std::uint32_t classes = golden_["classes"];
    kernels::StepContext step;
    step.feed = [=](int input, void* to) {
      if (input == 0) {
        const std::vector<float> values = testing::hashed_uniform("images", pixels);
        std::copy(values.begin(), values.end(), static_cast<float*>(to));
        return;
      }
      auto* label = static_cast<std::int32_t*>(to);
      for (const std::uint32_t x : testing::hashed("labels", labels))
        *label++ = static_cast<std::int32_t>(x % classes);
    };
    return step;
  }

  /// Trains five steps and compares each loss, the state behind them and the loss in evaluation.
  void check_steps(const Optimizer& optimizer, const std::string& kind, std::size_t column) {
    ir::Graph graph = forward(true);
    autodiff::append_backward(graph, graph.loss,
                              [&](ir::Graph& g, ir::TensorId parameter, ir::TensorId gradient) {
                                append_update(g, parameter, gradient, optimizer);
                              });
    ir::verify(graph);
    const lower::Executable training = executable(graph, nullptr);
    ir::verify(training.graph);
    SimpleRunner runner(training, *backend_);
    for (const ir::Carried& state : graph.carried) {
      const ir::Tensor& tensor = graph.tensor(state.begin);
      runner.set_state(tensor.name,
                       testing::hashed_state(tensor, golden_["norm_factor"], golden_["norm_term"]));
    }
    kernels::StepContext step = context(graph);
    step.learning_rate = golden_[kind + "_rate"];
    for (step.step = 0; step.step < kSteps; ++step.step) {
      runner.run(step);
      check_loss(runner.loss(), kind, step.step);
    }
    check_state(runner, column);
    check_evaluation(training, runner, kind);
  }

 private:
  void check_loss(double loss, const std::string& kind, std::size_t index) const {
    const double expected = golden_["losses"][kind][index];
    EXPECT_LT(std::fabs(loss - expected), kTolerance * expected)
        << kind << " loss " << index << " is " << loss;
  }

  void check_state(SimpleRunner& runner, std::size_t column) const {
    const json& states = golden_["state"];
    for (const auto& [name, expected] : states.items()) {
      const std::vector<float> values = runner.state(name);
      double sum = 0;
      double sum_absolute = 0;
      for (const double value : values) {
        sum += value;
        sum_absolute += std::fabs(value);
      }
      const double size = expected[column + 1];
      EXPECT_LT(std::fabs(sum - expected[column].get<double>()), kTolerance * size) << name;
      EXPECT_LT(std::fabs(sum_absolute - size), kTolerance * size) << name;
      const double middle = expected[column + 2];
      const double scale = std::max(std::fabs(middle), size / static_cast<double>(values.size()));
      EXPECT_LT(std::fabs(values[values.size() / 2] - middle), kTolerance * scale) << name;
    }
  }

  void check_evaluation(const lower::Executable& training, SimpleRunner& trained, const std::string& kind) {
    const ir::Graph graph = forward(false);
    const lower::Executable evaluation = executable(graph, &training);
    ir::verify(evaluation.graph);
    SimpleRunner runner(evaluation, *backend_);
    for (const std::string& name : runner.state_names()) runner.set_state(name, trained.state(name));
    runner.run(context(graph));
    check_loss(runner.loss(), kind, kSteps);
  }

  json golden_;
  std::unique_ptr<kernels::Backend> backend_;
};

TEST_P(GoldenTest, FiveSgdStepsGivePyTorchsNumbers) {
  Optimizer options;
  options.momentum = 0.9F;
  options.weight_decay = 0.05F;
  check_steps(options, "sgd", 0);
}

TEST_P(GoldenTest, FiveAdamStepsGivePyTorchsNumbers) {
  Optimizer options;
  options.kind = OptimizerKind::adam;
  options.weight_decay = 0.05F;
  check_steps(options, "adam", 3);
}

std::vector<GoldenCase> all_cases() {
  std::vector<GoldenCase> cases;
  for (const Path path : {Path::reference, Path::lowered}) {
    for (const char* model :
         {"lenet", "alexnet", "vgg16", "vgg19", "resnet20", "resnet18", "resnet34", "resnet50", "resnet101",
          "resnet152", "resnet-137", "densenet121", "inception-v4", "unet", "unet3d", "vit_b_16"}) {
      cases.push_back({model, path});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTest, ::testing::ValuesIn(all_cases()), [](const auto& test) {
  std::string name =
      fmt::format("{}_{}", test.param.path == Path::lowered ? "lowered" : "reference", test.param.model);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace penstock::session
