#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lower/lower.h"
#include "lower/step_runner.h"
#include "support/classifier_builder.h"

namespace penstock::testing {
namespace {

/// One of each op that is cut in a way of its own: batch norm with and without what is fused into it,
/// gradients of weights and biases, pooling with indices, concat and split of channels, dropout, upsampling.
ir::Graph varied_network(std::int64_t batch) {
  ClassifierBuilder b("varied", {batch, 3, 19, 17});
  auto x = b.relu(
      b.batch_norm("bn1", b.conv("conv1", b.images(), 16, {.kernel = {3}, .stride = {2}, .bias = false})));
  x = b.max_pool(x, {.kernel = {3}, .stride = {2}, .padding = {1}});
  const auto shortcut = b.batch_norm("bn2", b.conv("conv2", x, 32, {.kernel = {1}, .bias = false}));
  auto y = b.relu(b.batch_norm("bn3", b.conv("conv3", x, 24, {.kernel = {3}, .padding = {1}})));
  y = b.batch_norm("bn4", b.conv("conv4", y, 32, {.kernel = {3}, .padding = {1}, .groups = 2}));
  x = b.relu(b.add(y, shortcut));
  const auto odd = b.relu(b.conv("conv5", x, 5, {.kernel = {3}, .padding = {1}}));
  x = b.concat({x, odd, b.conv("conv6", x, 8, {.kernel = {1}})});
  x = b.conv_transpose("up", x, 12, {.kernel = {2}, .stride = {2}});
  x = b.dropout(b.tanh(x), 0.25F);
  x = b.upsample(b.avg_pool(x, {}), {2}, true);
  const auto pooled = b.flatten(b.global_avg_pool(x));
  return b.finish(b.linear("fc", b.dropout(b.relu(b.linear("hidden", pooled, 20)), 0.5F), 7));
}

ir::Graph step_to_cut(const ir::Graph& network) {
  return lower::repeat_cheap(
      training_step(lower::fuse(lower::for_training(network)), {.momentum = 0.9F, .weight_decay = 1e-3F}), 0);
}

struct CutOutcome {
  std::vector<float> losses;
  std::map<std::string, std::vector<float>> state;
};

CutOutcome run_steps(kernels::Backend& backend, const ir::Graph& step) {
  ir::verify(step);
  const lower::Executable executable = lower::lower(step, backend);
  StepRunner runner(backend, executable);
  CutOutcome outcome;
  for (int i = 0; i < 3; ++i) outcome.losses.push_back(runner.run());
  outcome.state = runner.state();
  return outcome;
}

double outcome_difference(const CutOutcome& have, const CutOutcome& want) {
  EXPECT_EQ(have.state.size(), want.state.size());
  double worst = 0;
  for (std::size_t i = 0; i < want.losses.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(have.losses[i] / want.losses[i]) - 1));
  for (const auto& [name, values] : want.state) {
    const auto& other = have.state.at(name);
    EXPECT_EQ(other.size(), values.size()) << name;
    double largest = 1e-3, apart = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(values[i])));
      apart = std::max(apart, std::abs(static_cast<double>(values[i]) - static_cast<double>(other[i])));
    }
    worst = std::max(worst, apart / largest);
  }
  return worst;
}

TEST(CutBatch, TrainsAsTheWholeDoesWithinRounding) {
  for (const bool fast : {false, true}) {
    const auto backend = fast ? kernels::make_cpu_backend() : kernels::make_reference_backend();
    const ir::Graph step = step_to_cut(varied_network(6));
    const CutOutcome whole = run_steps(*backend, step);
    for (const std::int64_t samples : {4, 3, 2, 1}) {
      EXPECT_LT(outcome_difference(run_steps(*backend, lower::cut_batch(step, samples)), whole), 2e-4)
          << "slices of " << samples << ", " << backend->name();
    }
  }
}

TEST(CutBatch, EvaluationIsCutToo) {
  const auto backend = kernels::make_cpu_backend();
  const ir::Graph evaluation = lower::fuse(lower::for_evaluation(varied_network(5)));
  const CutOutcome whole = run_steps(*backend, evaluation);
  const CutOutcome cut = run_steps(*backend, lower::cut_batch(evaluation, 2));
  EXPECT_LT(outcome_difference(cut, whole), 1e-5);
}

TEST(CutBatch, NothingWideIsWholeAnyMore) {
  const ir::Graph step = step_to_cut(varied_network(8));
  const ir::Graph cut = lower::cut_batch(step, 2);
  const auto widest = [](const ir::Graph& graph) {
    std::int64_t bytes = 0;
    for (const ir::Tensor& tensor : graph.tensors) {
      const bool of_samples = tensor.role == ir::Role::activation && tensor.shape.rank() == 4;
      if (of_samples) bytes = std::max(bytes, tensor.size_bytes());
    }
    return bytes;
  };
  EXPECT_EQ(widest(cut), widest(step) / 4);
  for (const ir::Op& op : cut.ops) {
    EXPECT_NE(op.kind, ir::OpKind::batch_norm_backward);
    if (op.kind != ir::OpKind::concat || op.attrs_as<ir::AxisAttrs>().axis != 0) continue;
    const ir::Shape& whole = cut.tensor(op.outputs[0]).shape;
    EXPECT_EQ(whole.elements(2, whole.rank()), 1);
  }
}

/// Between two places where the whole batch must be known, all of a slice is done before the next begins.
TEST(CutBatch, RunsSliceBySlice) {
  ClassifierBuilder b("chain", {4, 3, 8, 8});
  auto x = b.relu(b.conv("conv1", b.images(), 8, {.kernel = {3}, .padding = {1}}));
  x = b.relu(b.conv("conv2", x, 8, {.kernel = {3}, .padding = {1}}));
  const ir::Graph network = b.finish(b.linear("fc", b.flatten(b.global_avg_pool(x)), 7));
  const ir::Graph cut = lower::cut_batch(lower::fuse(lower::for_evaluation(network)), 2);
  std::vector<std::string> convolutions;
  for (const ir::Op& op : cut.ops) {
    if (op.kind == ir::OpKind::conv) convolutions.push_back(op.name);
  }
  EXPECT_EQ(convolutions, (std::vector<std::string>{"conv1.0", "conv2.0", "conv1.1", "conv2.1"}));
}

TEST(CutBatch, WhatIsNoLargerThanASliceStaysAsItIs) {
  const ir::Graph step = step_to_cut(varied_network(4));
  EXPECT_EQ(ir::print(lower::cut_batch(step, 4)), ir::print(step));
  EXPECT_EQ(ir::print(lower::cut_batch(step, 0)), ir::print(step));
}

}  // namespace
}  // namespace penstock::testing
