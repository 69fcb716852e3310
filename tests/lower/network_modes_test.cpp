#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "lower/lower.h"
#include "lower/step_runner.h"
#include "support/classifier_builder.h"
#include "support/plain_executable.h"
#include "support/simple_runner.h"

namespace penstock::testing {
namespace {

using ir::OpKind;
using Builder = ClassifierBuilder;
using ::testing::ElementsAre;

std::vector<OpKind> kinds(const ir::Graph& graph) {
  std::vector<OpKind> found;
  for (const ir::Op& op : graph.ops) found.push_back(op.kind);
  return found;
}

bool has_state(const ir::Graph& graph, const std::string& name) {
  return std::any_of(graph.carried.begin(), graph.carried.end(),
                     [&](const ir::Carried& state) { return graph.tensor(state.begin).name == name; });
}

/// A network with a second head, `score`, that only evaluation wants and that alone reads the input `extra`.
ir::Graph two_heads() {
  Builder b("net", {2, 3, 6, 6});
  const auto x = b.flatten(b.images());
  ir::Graph graph = b.finish(b.linear("fc", x, 3));
  const ir::TensorId extra = graph.add_input("extra", ir::DType::f32, {2, 3});
  const ir::TensorId weight = graph.add_state("head.weight", {4, 3}, ir::Role::parameter, {});
  const ir::TensorId score = graph.add_tensor("score", ir::DType::f32, {2, 4}, ir::Role::activation);
  graph.add_op({OpKind::linear, ir::Phase::forward, "head", {extra, weight}, {score}, ir::LinearAttrs{}});
  graph.add_output("score", score, true);
  ir::verify(graph);
  return graph;
}

TEST(ForTraining, LeavesOutWhatOnlyEvaluationWants) {
  const ir::Graph network = two_heads();
  const ir::Graph graph = lower::for_training(network);
  ir::verify(graph);
  EXPECT_THAT(kinds(graph), ElementsAre(OpKind::input, OpKind::input, OpKind::reshape, OpKind::linear,
                                        OpKind::cross_entropy, OpKind::output));
  ASSERT_EQ(graph.inputs.size(), network.inputs.size());
  ASSERT_EQ(graph.outputs.size(), network.outputs.size());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    EXPECT_EQ(graph.inputs[i].name, network.inputs[i].name);
    EXPECT_EQ(graph.inputs[i].tensor == ir::kNone, graph.inputs[i].name == "extra");
  }
  for (const ir::Port& port : graph.outputs) EXPECT_EQ(port.tensor == ir::kNone, port.name != "loss");
  EXPECT_TRUE(has_state(graph, "head.weight"));
}

TEST(ForEvaluation, KeepsEveryOutput) {
  const ir::Graph graph = lower::for_evaluation(two_heads());
  ir::verify(graph);
  for (const ir::Port& port : graph.inputs) EXPECT_NE(port.tensor, ir::kNone) << port.name;
  for (const ir::Port& port : graph.outputs) EXPECT_NE(port.tensor, ir::kNone) << port.name;
}

TEST(ForEvaluation, TakesAwayDropoutAndIndices) {
  Builder b("net", {2, 3, 6, 6});
  const auto x = b.dropout(b.dropout(b.max_pool(b.images(), {}), 0.5F), 0.25F);
  const ir::Graph graph = lower::for_evaluation(b.finish(b.linear("fc", b.flatten(x), 3)));
  ir::verify(graph);
  EXPECT_THAT(kinds(graph), ElementsAre(OpKind::input, OpKind::input, OpKind::max_pool, OpKind::reshape,
                                        OpKind::linear, OpKind::cross_entropy, OpKind::count_correct,
                                        OpKind::output, OpKind::output, OpKind::output));
  EXPECT_EQ(graph.ops[2].outputs.size(), 1U);
}

TEST(ForEvaluation, ANormThatIsUsedTwiceReadsItsStatisticsBothTimes) {
  Builder b("net", {4, 3, 6, 6});
  ir::Graph graph = b.finish(b.linear("fc", b.flatten(b.batch_norm("bn", b.images())), 3));
  // The same layer once more, on what it made.
  const auto norm = std::find_if(graph.ops.begin(), graph.ops.end(),
                                 [](const ir::Op& op) { return op.kind == OpKind::batch_norm; });
  ir::Op again = *norm;
  again.name = "bn again";
  const auto update = std::find_if(graph.ops.begin(), graph.ops.end(),
                                   [](const ir::Op& op) { return op.kind == OpKind::statistics_update; });
  ir::Op update_again = *update;
  const auto channels = [&](const char* name) {
    return graph.add_tensor(name, ir::DType::f32, {3}, ir::Role::activation);
  };
  const ir::TensorId mean = channels("mean2"), variance = channels("variance2");
  const ir::TensorId first = again.outputs[0];
  again.inputs[0] = first;
  again.inputs[3] = mean;
  again.inputs[4] = variance;
  again.outputs = {graph.add_tensor("y2", ir::DType::f32, {4, 3, 6, 6}, ir::Role::activation)};
  for (const std::size_t k : {0U, 1U}) {
    update_again.inputs[k] = update->outputs[k];
    update_again.inputs[k + 2] = again.inputs[k + 3];
    update_again.outputs[k] = graph.add_successor(update->outputs[k], "next" + std::to_string(k));
    graph.replace_carried(update->inputs[k], update_again.outputs[k]);
  }
  graph.add_op({OpKind::batch_norm_statistics,
                ir::Phase::forward,
                "bn again.statistics",
                {first},
                {mean, variance},
                again.attrs});
  graph.add_op(again);
  graph.add_op(update_again);
  graph.add_output("y2", again.outputs[0]);
  ir::verify(graph);
  const ir::Graph evaluation = lower::for_evaluation(graph);
  ir::verify(evaluation);
  int norms = 0;
  for (const ir::Op& op : evaluation.ops) {
    if (op.kind != OpKind::batch_norm) continue;
    ++norms;
    EXPECT_EQ(evaluation.tensor(op.inputs[3]).name, "bn.running_mean");
    EXPECT_EQ(evaluation.tensor(op.inputs[4]).name, "bn.running_var");
  }
  EXPECT_EQ(norms, 2);
}

TEST(Outputs, AnyValueCanBeReadBackFromATrainingStepInPlainOrder) {
  Builder b("net", {4, 3, 9, 9});
  const auto x = b.relu(b.conv("conv", b.images(), 16, {.kernel = {3}}));
  ir::Graph network = b.finish(b.linear("fc", b.flatten(b.global_avg_pool(x)), 3));
  network.add_output("features", x.id);
  const ir::Graph graph = training_step(lower::fuse(lower::for_training(network)), {.momentum = 0.9F});
  const auto fast = kernels::make_cpu_backend();
  const auto plain = kernels::make_reference_backend();
  const lower::Executable fast_step = lower::lower(graph, *fast);
  const lower::Executable plain_step = lower::lower(graph, *plain);
  const std::size_t port = static_cast<std::size_t>(graph.find_output("features"));
  EXPECT_TRUE(fast_step.graph.tensor(fast_step.graph.outputs[port].tensor).layout.is_plain());
  std::vector<std::vector<float>> features;
  for (const auto& [step, backend] : {std::pair{&fast_step, fast.get()}, {&plain_step, plain.get()}}) {
    SimpleRunner runner(*step, *backend);
    for (const std::string& name : runner.state_names()) {
      runner.set_state(name, std::vector<float>(runner.state(name).size(), 0.125F));
    }
    kernels::StepContext context;
    context.feed = [](int input, void* to) {
      if (input == 0) {
        for (int i = 0; i < 4 * 3 * 81; ++i) static_cast<float*>(to)[i] = static_cast<float>(i % 7);
      } else {
        std::fill_n(static_cast<std::int32_t*>(to), 4, 1);
      }
    };
    runner.run(context);
    const auto& bytes = runner.output("features");
    const auto* values = reinterpret_cast<const float*>(bytes.data());
    features.emplace_back(values, values + bytes.size() / sizeof(float));
  }
  ASSERT_EQ(features[0].size(), 4U * 16 * 7 * 7);
  EXPECT_THAT(features[0], ::testing::Pointwise(::testing::FloatNear(1e-4F), features[1]));
}

}  // namespace
}  // namespace penstock::testing
