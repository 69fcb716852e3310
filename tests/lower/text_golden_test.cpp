#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "autodiff/backward.h"
#include "kernels/kernel.h"
#include "lower/lower.h"
#include "models/text_models.h"
#include "support/hashed_values.h"
#include "support/plain_executable.h"
#include "support/simple_runner.h"

namespace penstock::testing {
namespace {

using nlohmann::json;

constexpr double kTolerance = 1e-4;
constexpr std::size_t kSteps = 5;
/// Ours may be off from float64 by so many times what PyTorch's float32 is; more where the code is made for a
/// sanitizer, because the compiler then forms no fused multiply-adds and each product is rounded by itself.
#if defined(__SANITIZE_ADDRESS__)
constexpr double kErrorFactor = 6;
#else
constexpr double kErrorFactor = 3;
#endif

/// The ways a graph becomes something that runs.
enum class Path : std::uint8_t {
  reference,
  lowered,
  sliced,
  micro,  ///< sliced, a micro-batch a sample, and with a norm that clips nothing
};

struct GoldenCase {
  const char* model;
  const char* optimizer;
  Path path;
};

const char* path_name(Path path) {
  return path == Path::reference ? "Reference"
         : path == Path::lowered ? "Lowered"
         : path == Path::sliced  ? "Sliced"
                                 : "Micro";
}

models::Gpt2Config gpt2_config(const json& config) {
  models::Gpt2Config made;
  made.layers = config["layers"];
  made.heads = config["heads"];
  made.width = config["width"];
  made.vocabulary = config["vocabulary"];
  made.positions = config["positions"];
  return made;
}

class TextGoldenTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  void SetUp() override {
    const std::string path = fmt::format("{}/tests/golden/{}.json", PENSTOCK_SOURCE_DIR, GetParam().model);
    golden_ = json::parse(std::ifstream(path));
    kind_ = GetParam().optimizer;
    backend_ =
        GetParam().path == Path::reference ? kernels::make_reference_backend() : kernels::make_cpu_backend();
  }

  bool micro() const { return GetParam().path == Path::micro; }
  std::int64_t samples() const { return golden_["batch"]; }

  ir::Graph network() const {
    models::TextOptions options{micro() ? 1 : samples(), golden_["sequence"], false};
    const std::string name = GetParam().model;
    if (name.starts_with("gpt2")) return models::build_gpt2(name, gpt2_config(golden_["config"]), options);
    const std::string path = fmt::format("{}/{}-{}-config.json", PENSTOCK_BINARY_DIR, name, ::getpid());
    std::ofstream(path) << golden_["config"];
    const models::LlamaConfig config = models::read_llama_config(path);
    std::remove(path.c_str());
    return models::build_llama(name, config, options);
  }

  /// SGD with momentum or Adam, with weight decay, as make_golden.py has them.
  void append_update(ir::Graph& graph, ir::TensorId parameter, ir::TensorId gradient) const {
    const std::string name = graph.tensor(parameter).name;
    const ir::Shape shape = graph.tensor(parameter).shape;
    ir::Op op{ir::OpKind::sgd_update, ir::Phase::update, name + ".update", {parameter, gradient}, {}, {}};
    op.attrs = ir::SgdAttrs{0.9F, 0.05F, false};
    std::vector<std::string> states{".momentum"};
    if (kind_ == "adam") {
      op.kind = ir::OpKind::adam_update;
      ir::AdamAttrs attrs;
      attrs.weight_decay = 0.05F;
      op.attrs = attrs;
      states = {".first", ".second"};
    }
    for (const std::string& state : states)
      op.inputs.push_back(graph.add_state(name + state, shape, ir::Role::optimizer_state, {}));
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (i == 1) continue;
      const ir::TensorId next = graph.add_successor(op.inputs[i], graph.tensor(op.inputs[i]).name + "'");
      graph.replace_carried(op.inputs[i], next);
      op.outputs.push_back(next);
    }
    graph.add_op(std::move(op));
  }

  ir::Graph training_graph() const {
    ir::Graph graph = lower::for_training(network());
    if (GetParam().path != Path::reference) graph = lower::fuse(graph);
    autodiff::append_backward(graph, graph.loss,
                              [&](ir::Graph& g, ir::TensorId parameter, ir::TensorId gradient) {
                                append_update(g, parameter, gradient);
                              });
    ir::verify(graph);
    // A few rows a slice, so that every matrix has several.
    if (micro() || GetParam().path == Path::sliced) graph = lower::slice_updates(std::move(graph), 1024);
    return micro() ? lower::accumulate(std::move(graph), samples()) : graph;
  }

  kernels::StepContext context(const ir::Graph& graph) const {
    const std::int64_t tokens =
        golden_["batch"].get<std::int64_t>() * golden_["sequence"].get<std::int64_t>();
    std::int64_t vocabulary = 0;
    for (const ir::Tensor& tensor : graph.tensors) {
      if (tensor.name == "transformer.wte.weight" || tensor.name == "model.embed_tokens.weight")
        vocabulary = tensor.shape[0];
    }
    kernels::StepContext step;
    step.learning_rate = golden_["rates"][kind_];
    step.feed = [=](int input, void* to) {
      auto* token = static_cast<std::int32_t*>(to);
      for (const std::uint32_t x : hashed(input == 0 ? "tokens" : "labels", tokens))
        *token++ = static_cast<std::int32_t>(x % static_cast<std::uint32_t>(vocabulary));
    };
    return step;
  }

  void check_state(SimpleRunner& runner) const {
    const std::size_t column = kind_ == "sgd" ? 0 : 3;
    for (const auto& [name, expected] : golden_["state"].items()) {
      double sum = 0;
      double size = 0;
      for (const float value : runner.state(name)) {
        sum += value;
        size += std::fabs(value);
      }
      EXPECT_NEAR(sum, expected[column].get<double>(), kTolerance * size) << name;
      EXPECT_NEAR(size, expected[column + 1].get<double>(), kTolerance * size) << name;
    }
  }

  /// How far the weights are from float64's, as a share of what training changed.
  double update_error(SimpleRunner& runner) const {
    double squares = 0;
    for (const auto& [name, expected] : golden_["weights"][kind_].items()) {
      const std::vector<float> have = runner.state(name);
      EXPECT_EQ(have.size(), expected.size()) << name;
      for (std::size_t i = 0; i < have.size(); ++i) {
        const double apart = have[i] - expected[i].get<double>();
        squares += apart * apart;
      }
    }
    return std::sqrt(squares) / golden_["update_size"][kind_].get<double>();
  }

  json golden_;
  std::string kind_;
  std::unique_ptr<kernels::Backend> backend_;
};

TEST_P(TextGoldenTest, TrainsAsPyTorchDoes) {
  const ir::Graph graph = training_graph();
  ir::verify(graph);
  lower::LowerOptions options;
  options.clip_norm = micro() ? 1e9F : 0;
  const lower::Executable executable = GetParam().path == Path::reference
                                           ? plain_executable(graph, *backend_)
                                           : lower::lower(graph, *backend_, options);
  ir::verify(executable.graph);
  SimpleRunner runner(executable, *backend_);
  for (const ir::Carried& state : graph.carried) {
    const ir::Tensor& tensor = graph.tensor(state.begin);
    runner.set_state(tensor.name, hashed_state(tensor, golden_["factor"], golden_["term"]));
  }
  kernels::StepContext step = context(graph);
  for (step.step = 0; step.step < kSteps; ++step.step) {
    runner.run(step);
    const double expected = golden_["losses"][kind_][step.step];
    EXPECT_NEAR(runner.loss(), expected, kTolerance * expected) << "step " << step.step;
  }
  check_state(runner);
  EXPECT_LT(update_error(runner), kErrorFactor * golden_["float32_error"][kind_].get<double>());
}

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  for (const char* model : {"gpt2-tiny", "llama-tiny", "llama-tied"}) {
    for (const char* optimizer : {"sgd", "adam"}) {
      for (const Path path : {Path::reference, Path::lowered, Path::sliced, Path::micro})
        cases.push_back({model, optimizer, path});
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, TextGoldenTest, ::testing::ValuesIn(golden_cases()), [](const auto& info) {
  std::string name =
      fmt::format("{}_{}_{}", info.param.model, info.param.optimizer, path_name(info.param.path));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace penstock::testing
