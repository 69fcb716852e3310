#include "session/optimizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "support/hashed_values.h"
#include "support/plain_executable.h"
#include "support/simple_runner.h"

namespace penstock::session {
namespace {

struct OptimizerCase {
  const char* name;  ///< in tests/golden/optimizers.json
  Optimizer options;
  std::vector<std::string> state;
};

Optimizer sgd(float momentum, float weight_decay, bool nesterov = false) {
  Optimizer options;
  options.momentum = momentum;
  options.weight_decay = weight_decay;
  options.nesterov = nesterov;
  return options;
}

Optimizer adam(OptimizerKind kind, float weight_decay, bool other_betas = false) {
  Optimizer options;
  options.kind = kind;
  options.weight_decay = weight_decay;
  if (other_betas) {
    options.beta1 = 0.8F;
    options.beta2 = 0.95F;
    options.epsilon = 1e-3F;
  }
  return options;
}

/// A step that only updates parameter "p" by what it is fed.
ir::Graph update_graph(const Optimizer& options) {
  ir::Graph graph;
  graph.name = "update";
  const ir::TensorId gradient = graph.add_input("gradient", ir::DType::f32, {2, 3});
  const ir::TensorId parameter = graph.add_state("p", {2, 3}, ir::Role::parameter, {});
  append_update(graph, parameter, gradient, options);
  return graph;
}

class OptimizerTest : public ::testing::TestWithParam<OptimizerCase> {};

TEST_P(OptimizerTest, FiveUpdatesGivePyTorchsNumbers) {
  std::ifstream file(PENSTOCK_SOURCE_DIR "/tests/golden/optimizers.json");
  const nlohmann::json golden = nlohmann::json::parse(file)[GetParam().name];
  const ir::Graph graph = update_graph(GetParam().options);
  ir::verify(graph);
  const auto backend = kernels::make_reference_backend();
  const lower::Executable executable = testing::plain_executable(graph, *backend);
  testing::SimpleRunner runner(executable, *backend);
  std::vector<std::string> names{"p"};
  names.insert(names.end(), GetParam().state.begin(), GetParam().state.end());
  EXPECT_EQ(runner.state_names(), names);
  for (const std::string& name : names) runner.set_state(name, std::vector<float>(6, 0));
  runner.set_state("p", testing::hashed_uniform("parameter", 6));

  ASSERT_EQ(golden.size(), 5U);
  for (std::size_t i = 0; i < golden.size(); ++i) {
    kernels::StepContext step;
    step.step = i;
    step.learning_rate = 0.1;
    step.feed = [i](int, void* gradient) {
      const std::vector<float> values = testing::hashed_uniform(fmt::format("gradient {}", i), 6);
      std::copy(values.begin(), values.end(), static_cast<float*>(gradient));
    };
    runner.run(step);
    EXPECT_THAT(runner.state("p"),
                ::testing::Pointwise(::testing::FloatNear(2e-6F), golden[i].get<std::vector<float>>()))
        << "step " << i;
  }
}

const std::vector<std::string> kMoments{"p.exp_avg", "p.exp_avg_sq"};

INSTANTIATE_TEST_SUITE_P(
    All, OptimizerTest,
    ::testing::Values(OptimizerCase{"sgd", sgd(0, 0), {}},
                      OptimizerCase{"sgd with weight decay", sgd(0, 0.1F), {}},
                      OptimizerCase{"sgd with momentum", sgd(0.9F, 0.1F), {"p.momentum"}},
                      OptimizerCase{"sgd with Nesterov", sgd(0.8F, 0.1F, true), {"p.momentum"}},
                      OptimizerCase{"adam", adam(OptimizerKind::adam, 0), kMoments},
                      OptimizerCase{"adam with weight decay", adam(OptimizerKind::adam, 0.1F, true),
                                    kMoments},
                      OptimizerCase{"adamw", adam(OptimizerKind::adamw, 0.1F), kMoments},
                      OptimizerCase{"adamw with betas", adam(OptimizerKind::adamw, 0.2F, true), kMoments}),
    [](const auto& test) {
      std::string name = test.param.name;
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

TEST(Optimizer, OptionsOutOfRangeAreRefused) {
  EXPECT_NO_THROW(check({}));
  EXPECT_THROW(check(sgd(1, 0)), UserError);
  EXPECT_THROW(check(sgd(-0.1F, 0)), UserError);
  EXPECT_THROW(check(sgd(0.9F, -1)), UserError);
  EXPECT_THROW(check(sgd(0, 0, true)), UserError);
  EXPECT_THROW(check(sgd(std::nanf(""), 0)), UserError);
  Optimizer options = adam(OptimizerKind::adam, 0);
  options.beta2 = 1;
  EXPECT_THROW(check(options), UserError);
}

/// Moments of float32 are between two bfloat16: each of the two comes as often as makes the mean right.
TEST(Bf16Moments, AreRoundedByChanceAndRightOnAverage) {
  static constexpr std::size_t kCount = 8191;
  Optimizer options = Optimizer::adam();
  options.moments = MomentType::bf16;
  ir::Graph graph;
  graph.name = "update";
  const ir::TensorId gradient = graph.add_input("gradient", ir::DType::f32, {kCount});
  append_update(graph, graph.add_state("p", {kCount}, ir::Role::parameter, {}), gradient, options);
  const auto backend = kernels::make_cpu_backend();
  const lower::Executable executable = lower::lower(graph, *backend);
  const auto updated = [&](std::uint64_t seed, std::uint64_t at) {
    testing::SimpleRunner runner(executable, *backend);
    for (const std::string& name : runner.state_names())
      runner.set_state(name, std::vector<float>(kCount, 0));
    kernels::StepContext step;
    step.seed = seed;
    step.step = at;
    step.feed = [](int, void* to) { std::fill_n(static_cast<float*>(to), kCount, 1.2345F); };
    runner.run(step);
    return std::pair{runner.state("p.exp_avg"), runner.state("p.exp_avg_sq")};
  };
  const auto [first, second] = updated(1, 0);
  const auto check = [](const std::vector<float>& values, double exact) {
    double sum = 0;
    std::set<float> kinds;
    for (const float value : values) {
      sum += value;
      kinds.insert(value);
    }
    EXPECT_EQ(kinds.size(), 2U);
    EXPECT_LT(*kinds.begin(), exact);
    EXPECT_GT(*kinds.rbegin(), exact);
    // Six deviations of the mean at most.
    const double step = static_cast<double>(*kinds.rbegin()) - *kinds.begin();
    EXPECT_NEAR(sum / kCount, exact, 6 * 0.5 * step / std::sqrt(static_cast<double>(kCount)));
  };
  check(first, 0.1 * 1.2345);
  check(second, 0.001 * 1.2345 * 1.2345);
  EXPECT_EQ(updated(1, 0).first, first);
  EXPECT_NE(updated(2, 0).first, first);
  EXPECT_NE(updated(1, 1).first, first);
}

}  // namespace
}  // namespace penstock::session
