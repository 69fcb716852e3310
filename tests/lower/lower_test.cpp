#include "lower/lower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lower/step_runner.h"
#include "lower/varied_trunk.h"

namespace penstock::testing {
namespace {

using ir::OpKind;
using Builder = ClassifierBuilder;

/// Every kind of joint that layouts have to get over.
ir::Graph mixed_network() {
  Builder b("mixed", {4, 3, 19, 17});
  return b.finish(b.linear("fc", b.relu(b.linear("hidden", varied_trunk(b), 20)), 7));
}

/// Bottleneck blocks with and without a stride, all channel counts in whole blocks.
ir::Graph residual_network() {
  Builder b("residual", {6, 3, 26, 30});
  auto x = b.relu(b.batch_norm(
      "bn", b.conv("conv", b.images(), 32, {.kernel = {7}, .stride = {2}, .padding = {3}, .bias = false})));
  const auto block = [&](const std::string& name, Value in, std::int64_t width, std::int64_t stride) {
    auto y = b.relu(
        b.batch_norm(name + ".bn1", b.conv(name + ".conv1", in, width, {.kernel = {1}, .bias = false})));
    y = b.relu(b.batch_norm(name + ".bn2",
                            b.conv(name + ".conv2", y, width,
                                   {.kernel = {3}, .stride = {stride}, .padding = {1}, .bias = false})));
    y = b.batch_norm(name + ".bn3", b.conv(name + ".conv3", y, 4 * width, {.kernel = {1}, .bias = false}));
    if (b.shape(in)[1] == 4 * width && stride == 1) return b.relu(b.add(y, in));
    const auto shortcut = b.batch_norm(
        name + ".bn4",
        b.conv(name + ".conv4", in, 4 * width, {.kernel = {1}, .stride = {stride}, .bias = false}));
    return b.relu(b.add(y, shortcut));
  };
  x = block("a", x, 16, 1);
  x = block("b", x, 16, 1);
  x = block("c", x, 24, 2);
  return b.finish(b.linear("fc", b.flatten(b.global_avg_pool(x)), 10));
}

/// What a training step begins with.
ir::Graph forward_step(const ir::Graph& network) {
  return lower::fuse(lower::for_training(network));
}

void expect_close(const std::map<std::string, std::vector<float>>& have,
                  const std::map<std::string, std::vector<float>>& want, double tolerance) {
  ASSERT_EQ(have.size(), want.size());
  for (const auto& [name, values] : want) {
    const auto& other = have.at(name);
    ASSERT_EQ(other.size(), values.size()) << name;
    double largest = 1e-3;
    double error = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(values[i])));
      error = std::max(error, std::abs(static_cast<double>(values[i]) - static_cast<double>(other[i])));
    }
    EXPECT_LE(error, tolerance * largest) << name;
  }
}

void expect_same_training(const ir::Graph& forward, int steps, double tolerance) {
  const ir::Graph graph = training_step(forward_step(forward), {.momentum = 0.9F, .weight_decay = 1e-3F});
  const auto fast = kernels::make_cpu_backend();
  const auto plain = kernels::make_reference_backend();
  const lower::Executable fast_step = lower::lower(graph, *fast);
  const lower::Executable plain_step = lower::lower(graph, *plain);
  StepRunner fast_runner(*fast, fast_step);
  StepRunner plain_runner(*plain, plain_step);
  for (int i = 0; i < steps; ++i) {
    const float want = plain_runner.run();
    EXPECT_NEAR(fast_runner.run(), want, tolerance * std::abs(want)) << "step " << i;
  }
  expect_close(fast_runner.state(), plain_runner.state(), 10 * tolerance);
}

TEST(Lower, TrainsAMixedNetworkAsTheReferenceDoes) {
  expect_same_training(mixed_network(), 3, 1e-4);
}

TEST(Lower, TrainsAResidualNetworkAsTheReferenceDoes) {
  expect_same_training(residual_network(), 3, 1e-4);
}

TEST(Lower, SharingMemoryChangesNothing) {
  const ir::Graph graph = training_step(forward_step(mixed_network()), {.momentum = 0.9F});
  const auto backend = kernels::make_cpu_backend();
  const lower::Executable shared = lower::lower(graph, *backend);
  lower::LowerOptions each_apart;
  each_apart.in_place = false;
  const lower::Executable apart = lower::lower(graph, *backend, each_apart);
  EXPECT_LT(shared.graph.storages, apart.graph.storages);
  StepRunner shared_runner(*backend, shared);
  StepRunner apart_runner(*backend, apart);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(shared_runner.run(), apart_runner.run());
  EXPECT_EQ(shared_runner.state(), apart_runner.state());
}

TEST(Lower, BatchNormBackwardAndReluWriteInPlace) {
  Builder b("net", {2, 16, 8, 8});
  const auto x = b.conv("conv1", b.images(), 16, {.kernel = {3}, .padding = {1}, .bias = false});
  const auto y = b.relu(b.add(b.batch_norm("bn", x), b.images()));
  const auto z = b.relu(b.conv("conv2", y, 16, {.kernel = {1}}));
  const ir::Graph graph =
      training_step(forward_step(b.finish(b.linear("fc", b.flatten(b.global_avg_pool(z)), 4))), {});
  const auto backend = kernels::make_cpu_backend();
  const lower::Executable step = lower::lower(graph, *backend);
  for (const ir::Op& op : step.graph.ops) {
    const auto storage = [&](ir::TensorId id) { return step.graph.tensor(id).storage; };
    if (op.kind == OpKind::batch_norm_backward) {
      EXPECT_EQ(storage(op.outputs[0]), storage(op.inputs[0]));
    }
    if (op.kind == OpKind::activation_backward) {
      EXPECT_TRUE(storage(op.outputs[0]) == storage(op.inputs[0]) ||
                  storage(op.outputs[0]) == storage(op.inputs[1]));
    }
    if (op.kind == OpKind::batch_norm) {
      // Backward reads x again, and z is data.
      EXPECT_NE(storage(op.outputs[0]), storage(op.inputs[0]));
      EXPECT_NE(storage(op.outputs[0]), storage(op.inputs[5]));
    }
  }
}

TEST(Lower, ReordersActivationsOnlyWhereLayoutsMeet) {
  const ir::Graph graph = training_step(
      forward_step(models::graph_of(Network::model("resnet18", {.batch = 2, .image_size = 224}))), {});
  const auto backend = kernels::make_cpu_backend();
  const lower::Executable step = lower::lower(graph, *backend);
  for (const ir::Op& op : step.graph.ops) {
    if (op.kind != OpKind::reorder) continue;
    EXPECT_EQ(step.graph.tensor(op.inputs[0]).role, ir::Role::parameter) << op.name.text();
  }
}

TEST(Lower, ATensorIsReorderedOncePerLayout) {
  Builder b("net", {2, 16, 8, 8});
  const auto x = b.conv("conv", b.images(), 16, {.kernel = {3}});
  const auto a = b.linear("a", b.flatten(x), 4);
  const auto c = b.linear("b", b.flatten(x), 4);
  const ir::Graph graph = lower::for_evaluation(b.finish(b.add(a, c)));
  const auto backend = kernels::make_cpu_backend();
  const lower::Executable step = lower::lower(graph, *backend);
  int reorders = 0;
  for (const ir::Op& op : step.graph.ops) {
    if (op.kind == OpKind::reorder && op.inputs[0] == x.id) ++reorders;
    if (op.kind == OpKind::reorder) {
      EXPECT_FALSE(step.graph.tensor(op.inputs[0]).layout == step.graph.tensor(op.outputs[0]).layout);
    }
  }
  const bool blocked =
      std::any_of(step.graph.tensors.begin(), step.graph.tensors.end(),
                  [](const ir::Tensor& t) { return t.role == ir::Role::activation && !t.layout.is_plain(); });
  EXPECT_EQ(reorders, blocked ? 1 : 0);
}

TEST(Lower, UpdatesKeepTheStatesLayout) {
  const ir::Graph graph = training_step(forward_step(mixed_network()), {.momentum = 0.9F});
  const auto backend = kernels::make_cpu_backend();
  const lower::Executable step = lower::lower(graph, *backend);
  EXPECT_EQ(step.kernels.size(), step.graph.ops.size());
  EXPECT_EQ(step.scratch_bytes.size(), step.graph.ops.size());
  for (const ir::Op& op : step.graph.ops) {
    if (op.kind != OpKind::sgd_update) continue;
    for (const ir::TensorId id : op.inputs) {
      EXPECT_TRUE(step.graph.tensor(id).layout == step.graph.tensor(op.inputs[0]).layout) << op.name.text();
    }
  }
}

TEST(Lower, EvaluationSharesTheTrainingState) {
  const auto backend = kernels::make_cpu_backend();
  const lower::Executable train =
      lower::lower(training_step(forward_step(mixed_network()), {.momentum = 0.9F}), *backend);
  lower::Executable test =
      lower::lower(lower::fuse(lower::for_evaluation(mixed_network())), *backend, {}, &train);
  lower::share_state(test, train);
  EXPECT_NO_THROW(ir::verify(test.graph));
  std::map<std::string, const ir::Tensor*> states;
  for (const ir::Carried& state : train.graph.carried) {
    states.emplace(train.graph.tensor(state.begin).name, &train.graph.tensor(state.begin));
  }
  for (const ir::Carried& state : test.graph.carried) {
    const ir::Tensor& tensor = test.graph.tensor(state.begin);
    ASSERT_TRUE(states.contains(tensor.name)) << tensor.name.text();
    EXPECT_EQ(tensor.storage, states.at(tensor.name)->storage);
    EXPECT_TRUE(tensor.layout == states.at(tensor.name)->layout);
  }
  for (const ir::Tensor& tensor : test.graph.tensors) {
    if (!ir::is_state(tensor.role)) {
      EXPECT_GE(tensor.storage, train.graph.storages) << tensor.name.text();
    }
  }
}

/// Norms with functions behind them, a squeeze and excitation, a block on rows, sums that are added up.
ir::Graph mobile_network() {
  Builder b("mobile", {4, 3, 20, 16});
  auto x = b.apply("relu6", {b.batch_norm("bn1", b.conv("conv1", b.images(), 16, {.kernel = {3}}))});
  x = b.batch_norm("bn2", b.conv("conv2", x, 16, {.kernel = {3}, .padding = {1}, .groups = 16}));
  x = b.apply("silu", {x});
  const auto squeezed = b.apply("sigmoid", {b.conv("squeeze", b.global_avg_pool(x), 16, {.kernel = {1}})});
  x = b.conv("conv3", b.apply("mul", {x, squeezed}), 24, {.kernel = {1}});
  x = b.transpose(x, {0, 2, 3, 1});
  for (const std::string name : {"a", "b", "c", "d", "e"}) {
    auto y = b.linear(name + ".wide", b.layer_norm(name + ".norm", x), 48);
    y = b.linear(name + ".narrow", b.dropout(b.gelu(y), 0.1F), 24);
    x = b.apply("add", {x, b.apply("mul", {y, b.parameter(name + ".scale", {24})})});
  }
  return b.finish(b.linear("fc", b.reduce(Reduction::mean, x, {1, 2}), 5));
}

/// How many forward ops of a kind make something that backward reads.
std::int64_t held(const ir::Graph& graph, OpKind kind) {
  const auto readers = ir::consumers(graph);
  return std::count_if(graph.ops.begin(), graph.ops.end(), [&](const ir::Op& op) {
    if (op.kind != kind || op.phase != ir::Phase::forward) return false;
    const auto& all = readers[static_cast<std::size_t>(op.outputs[0])];
    return std::any_of(all.begin(), all.end(), [&](ir::OpId reader) {
      const ir::Op& by = graph.op(reader);
      return by.phase == ir::Phase::backward && !by.name.text().ends_with(".again");
    });
  });
}

TEST(RepeatCheap, GivesTheSameBitsWithLessHeld) {
  for (const ir::Graph& forward : {mixed_network(), residual_network(), mobile_network()}) {
    const ir::Graph whole = training_step(forward_step(forward), {.momentum = 0.9F});
    const ir::Graph repeated = lower::repeat_cheap(whole, 0);
    EXPECT_NO_THROW(ir::verify(repeated));
    EXPECT_GT(repeated.ops.size(), whole.ops.size());
    const auto backend = kernels::make_cpu_backend();
    const lower::Executable one = lower::lower(whole, *backend), two = lower::lower(repeated, *backend);
    StepRunner a(*backend, one), b(*backend, two);
    for (int step = 0; step < 2; ++step) EXPECT_EQ(a.run(), b.run());
    EXPECT_EQ(a.state(), b.state());
  }
}

TEST(RepeatCheap, HoldsWhatNothingElseHolds) {
  const auto repeated = [](const ir::Graph& forward) {
    return lower::repeat_cheap(training_step(forward_step(forward), {}), 0);
  };
  const ir::Graph residual = repeated(residual_network());
  // Backward reads two of the three sums, and makes the second of them from the first.
  EXPECT_EQ(held(residual, OpKind::batch_norm), 1);
  const ir::Graph mobile = repeated(mobile_network());
  EXPECT_EQ(held(mobile, OpKind::batch_norm), 0);
  EXPECT_EQ(held(mobile, OpKind::layer_norm), 0);
  EXPECT_EQ(held(mobile, OpKind::activation), 0);
  EXPECT_EQ(held(mobile, OpKind::dropout), 0);
  const ir::Graph large_only =
      lower::repeat_cheap(training_step(forward_step(mobile_network()), {}), 1 << 20);
  EXPECT_GT(held(large_only, OpKind::layer_norm), 0);
}

TEST(JoinSlices, PartsOfAWholeBecomeASplit) {
  Builder b("parts", {4, 3, 8, 6});
  auto x = b.conv("conv", b.images(), 12, {.kernel = {3}, .padding = {1}});
  const auto last = b.slice(x, 1, 8, 4), first = b.slice(x, 1, 0, 4), middle = b.slice(x, 1, 4, 4);
  x = b.roll(b.apply("add", {b.apply("mul", {first, middle}), last}), 3, 2);
  const auto overlapping = b.apply("add", {b.slice(x, 2, 0, 5), b.slice(x, 2, 3, 5)});
  const ir::Graph network = b.finish(b.linear("fc", b.flatten(overlapping), 5));
  const ir::Graph apart = lower::for_training(network), joined = forward_step(network);
  const auto count = [](const ir::Graph& graph, OpKind kind) {
    return std::count_if(graph.ops.begin(), graph.ops.end(),
                         [&](const ir::Op& op) { return op.kind == kind; });
  };
  EXPECT_EQ(count(apart, OpKind::slice), 7);
  EXPECT_EQ(count(joined, OpKind::slice), 2);
  EXPECT_EQ(count(joined, OpKind::split), 2);
  const auto backend = kernels::make_reference_backend();
  const lower::Executable one = lower::lower(training_step(apart, {}), *backend);
  const lower::Executable two = lower::lower(training_step(joined, {}), *backend);
  StepRunner a(*backend, one), c(*backend, two);
  for (int step = 0; step < 2; ++step) EXPECT_NEAR(a.run(), c.run(), 1e-6);
  expect_close(c.state(), a.state(), 1e-5);
}

TEST(SliceUpdates, NeverHasAWholeGradientAndTrainsTheSame) {
  Builder b("wide", {5, 2, 6, 6});
  const auto hidden = b.relu(b.linear("wide", b.flatten(b.images()), 301));
  const ir::Graph whole =
      training_step(forward_step(b.finish(b.linear("fc", hidden, 3))), {.momentum = 0.9F});
  const std::int64_t slice_bytes = 16 * 1024;
  const ir::Graph sliced = lower::slice_updates(whole, slice_bytes);
  EXPECT_NO_THROW(ir::verify(sliced));
  for (const ir::Tensor& tensor : sliced.tensors) {
    if (tensor.role != ir::Role::gradient && tensor.role != ir::Role::optimizer_state) continue;
    EXPECT_LE(tensor.size_bytes(), slice_bytes) << tensor.name.text();
  }
  const std::unique_ptr<kernels::Backend> backends[] = {kernels::make_cpu_backend(),
                                                        kernels::make_reference_backend()};
  for (const auto& backend : backends) {
    const lower::Executable one = lower::lower(whole, *backend), two = lower::lower(sliced, *backend);
    StepRunner a(*backend, one), c(*backend, two);
    for (int step = 0; step < 3; ++step) EXPECT_NEAR(a.run(), c.run(), 1e-5);
    auto have = c.state(), want = a.state();
    std::vector<float> joined;
    for (int k = 0; have.contains("wide.weight.momentum." + std::to_string(k)); ++k) {
      const auto part = have.extract("wide.weight.momentum." + std::to_string(k)).mapped();
      joined.insert(joined.end(), part.begin(), part.end());
    }
    have["wide.weight.momentum"] = joined;
    expect_close(have, want, 1e-5);
  }
}

}  // namespace
}  // namespace penstock::testing
