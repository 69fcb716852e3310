#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <regex>

#include "lower/count_ops.h"
#include "lower/cut_outcome.h"
#include "lower/varied_trunk.h"

namespace penstock::testing {
namespace {

/// One of each op that is cut in a way of its own: batch norm with and without what is fused into it,
/// gradients of weights and biases, pooling with indices, concat and split of channels, dropout, upsampling.
ir::Graph varied_network(std::int64_t batch) {
  ClassifierBuilder b("varied", {batch, 3, 19, 17});
  return b.finish(b.linear("fc", b.dropout(b.relu(b.linear("hidden", varied_trunk(b), 20)), 0.5F), 7));
}

/// A label for each point of an image.
ir::Graph segmenting_network(std::int64_t batch) {
  NetworkBuilder b("segmenting");
  const Value images = b.input("images", DType::f32, {batch, 3, 10, 12});
  const Value labels = b.input("labels", DType::s32, {batch, 10, 12});
  ConvOptions same;
  same.padding = {1};
  const Value x = b.relu(b.batch_norm("norm", b.conv("conv", images, 16, same)));
  b.classifier(b.conv("head", x, 3, same), labels);
  return models::graph_of(b.finish());
}

TEST(CutBatch, TrainsAsTheWholeDoesWithinRounding) {
  for (const bool fast : {false, true}) {
    const auto backend = fast ? kernels::make_cpu_backend() : kernels::make_reference_backend();
    const ir::Graph step = step_to_cut(varied_network(6));
    const CutOutcome whole = run_cut_steps(*backend, step);
    for (const std::int64_t samples : {4, 3, 2, 1}) {
      EXPECT_LT(outcome_difference(run_cut_steps(*backend, lower::cut_batch(step, {samples})), whole), 2e-4)
          << "slices of " << samples << ", " << backend->name();
    }
  }
}

/// The loss of images is a sum over slices; labels of points come with their images.
TEST(CutBatch, ALossOfImagesIsCut) {
  for (const bool fast : {false, true}) {
    const auto backend = fast ? kernels::make_cpu_backend() : kernels::make_reference_backend();
    const ir::Graph step = step_to_cut(segmenting_network(5));
    const ir::Graph cut = lower::cut_batch(step, {2});
    EXPECT_LT(outcome_difference(run_cut_steps(*backend, cut), run_cut_steps(*backend, step)), 2e-4);
    for (const ir::Tensor& tensor : cut.tensors)
      EXPECT_TRUE(tensor.shape.rank() < 3 || tensor.shape[0] != 5) << tensor.name.text();
    EXPECT_EQ(cut.ops[0].name, "images.0");
    EXPECT_EQ(cut.ops[1].name, "labels.0");
  }
}

TEST(CutBatch, TheDefaultIsWholeBatchesUpToASize) {
  const auto slice = [](std::int64_t batch, std::int64_t edge) {
    ClassifierBuilder b("net", {batch, 3, edge, edge});
    const Value x = b.relu(b.conv("conv", b.images(), 64, {.kernel = {3}, .padding = {1}}));
    return lower::default_slice(b.finish(b.linear("fc", b.flatten(b.global_avg_pool(x)), 4)));
  };
  // What conv and ReLU read and write: 2 x 64 x 256 x 256 floats an image, 32 MiB.
  EXPECT_EQ(slice(5, 256), 0);
  EXPECT_EQ(slice(6, 256), 4);
  EXPECT_EQ(slice(1000, 256), 4);
  EXPECT_EQ(slice(1000, 32), 256);
  EXPECT_EQ(slice(2, 1024), 1);
}

TEST(CutBatch, EvaluationIsCutToo) {
  const auto backend = kernels::make_cpu_backend();
  const ir::Graph evaluation = lower::fuse(lower::for_evaluation(varied_network(5)));
  const CutOutcome whole = run_cut_steps(*backend, evaluation);
  const CutOutcome cut = run_cut_steps(*backend, lower::cut_batch(evaluation, {2}));
  EXPECT_LT(outcome_difference(cut, whole), 1e-5);
}

/// Right answers are counted slice by slice, and labels of points are not put together.
TEST(CutBatch, RightAnswersAreCountedInSlices) {
  const ir::Graph cut = lower::cut_batch(lower::fuse(lower::for_evaluation(segmenting_network(5))), {2});
  ir::verify(cut);
  EXPECT_EQ(count(cut, ir::OpKind::count_correct), 3);
  for (const ir::Op& op : cut.ops) EXPECT_FALSE(op.kind == ir::OpKind::concat && op.name == "labels.whole");
  ir::verify(lower::cut_images(cut, 2));
}

TEST(CutBatch, NothingWideIsWholeAnyMore) {
  const ir::Graph step = step_to_cut(varied_network(8));
  const ir::Graph cut = lower::cut_batch(step, {2});
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
    EXPECT_NE(op.kind, ir::OpKind::batch_norm_silu_backward);
    if (op.kind != ir::OpKind::concat || op.attrs_as<ir::AxisAttrs>().axis != 0) continue;
    const ir::Shape& whole = cut.tensor(op.outputs[0]).shape;
    EXPECT_EQ(whole.elements(2, whole.rank()), 1);
  }
}

/// The residual's gradient is made with the sums, over dy: one tensor waits for the sums of the whole batch,
/// serves the norm's second half and goes on along the residual. The mask is read once.
TEST(CutBatch, TheResidualsGradientIsMadeOnce) {
  const ir::Graph cut = lower::cut_batch(step_to_cut(varied_network(6)), {2});
  for (const bool fast : {false, true}) {
    const auto backend = fast ? kernels::make_cpu_backend() : kernels::make_reference_backend();
    const lower::Executable step = lower::lower(cut, *backend);
    const auto readers = ir::consumers(step.graph);
    const auto readers_of = [&](ir::TensorId id) { return readers[static_cast<std::size_t>(id)]; };
    int residuals = 0;
    for (const ir::Op& sums : step.graph.ops) {
      if (sums.kind != ir::OpKind::batch_norm_backward_sums || sums.outputs.size() < 3) continue;
      ++residuals;
      const ir::TensorId dz = sums.outputs[2];
      EXPECT_EQ(step.graph.tensor(dz).storage, step.graph.tensor(sums.inputs[1]).storage);
      EXPECT_EQ(readers_of(sums.inputs[4]).size(), 1U);
      ASSERT_GT(readers_of(dz).size(), 1U);
      const ir::Op& data = step.graph.op(readers_of(dz)[0]);
      EXPECT_EQ(data.kind, ir::OpKind::batch_norm_backward_data);
      EXPECT_EQ(data.inputs[0], sums.inputs[0]);
      EXPECT_EQ(data.inputs.size(), 7U);
      EXPECT_EQ(data.outputs.size(), 1U);
    }
    EXPECT_EQ(residuals, 3) << "slices of the one norm with a residual";
  }
}

/// Between two places where the whole batch must be known, all of a slice is done before the next begins.
TEST(CutBatch, RunsSliceBySlice) {
  ClassifierBuilder b("chain", {4, 3, 8, 8});
  auto x = b.relu(b.conv("conv1", b.images(), 8, {.kernel = {3}, .padding = {1}}));
  x = b.relu(b.conv("conv2", x, 8, {.kernel = {3}, .padding = {1}}));
  const ir::Graph network = b.finish(b.linear("fc", b.flatten(b.global_avg_pool(x)), 7));
  const ir::Graph cut = lower::cut_batch(lower::fuse(lower::for_evaluation(network)), {2});
  std::vector<std::string> convolutions;
  for (const ir::Op& op : cut.ops) {
    if (op.kind == ir::OpKind::conv) convolutions.push_back(op.name);
  }
  EXPECT_EQ(convolutions, (std::vector<std::string>{"conv1.0", "conv2.0", "conv1.1", "conv2.1"}));
}

/// Slice after slice of the images, each where it is needed first, then the labels.
TEST(CutBatch, ImagesComeInSlicesAndLabelsBehindThem) {
  const ir::Graph cut = lower::cut_batch(step_to_cut(varied_network(5)), {2});
  std::vector<std::string> order;
  for (const ir::Op& op : cut.ops) {
    if (op.kind == ir::OpKind::input || op.kind == ir::OpKind::conv) order.push_back(op.name);
  }
  order.resize(7);
  EXPECT_EQ(order, (std::vector<std::string>{"images.0", "conv1.0", "images.1", "conv1.1", "images.2",
                                             "conv1.2", "conv2.2"}));
  const std::int32_t images = cut.find_input("images");
  EXPECT_EQ(cut.input_shape(images), ir::Shape({5, 3, 19, 17}));
  std::vector<std::int64_t> first;
  for (const std::int32_t part : cut.ports_of(images))
    first.push_back(cut.inputs[static_cast<std::size_t>(part)].first);
  EXPECT_EQ(first, (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(cut.ports_of(cut.find_input("labels")).size(), 1U);
  EXPECT_EQ(cut.find_input("images.0"), ir::kNone);
}

/// Three stages, each with a quarter of the points of the one before.
ir::Graph narrowing_network(std::int64_t batch) {
  ClassifierBuilder b("narrowing", {batch, 3, 16, 16});
  Value x = b.images();
  for (int stage = 1; stage <= 3; ++stage) {
    if (stage > 1) x = b.max_pool(x, {.kernel = {2}, .stride = {2}});
    for (int i = 1; i <= 4; ++i) {
      const std::string name = fmt::format("{}.{}", stage, i);
      const Value y =
          b.batch_norm(name + ".norm", b.conv(name, x, 8, {.kernel = {3}, .padding = {1}, .bias = false}));
      x = b.relu(i == 1 ? y : b.add(y, x));
    }
  }
  return b.finish(b.linear("fc", b.flatten(b.global_avg_pool(x)), 7));
}

TEST(CutBatch, NarrowRegionsRunInFewerSlices) {
  const ir::Graph step = step_to_cut(narrowing_network(8));
  const ir::Graph cut = lower::cut_batch(step, {.slice_samples = 1, .by_width = true});
  std::map<char, int> convolutions;  // by stage
  for (const ir::Op& op : cut.ops) {
    if (op.kind == ir::OpKind::conv) ++convolutions[op.name.text()[0]];
  }
  EXPECT_EQ(convolutions, (std::map<char, int>{{'1', 4 * 8}, {'2', 4 * 4}, {'3', 4}}));
}

TEST(CutBatch, RegionsOfTheirOwnTrainAsTheWholeDoesWithinRounding) {
  for (const bool fast : {false, true}) {
    const auto backend = fast ? kernels::make_cpu_backend() : kernels::make_reference_backend();
    for (const ir::Graph& network : {narrowing_network(6), varied_network(6)}) {
      const ir::Graph step = step_to_cut(network);
      const CutOutcome whole = run_cut_steps(*backend, step);
      for (const std::int64_t samples :
           fast ? std::vector<std::int64_t>{3, 2, 1} : std::vector<std::int64_t>{1}) {
        const ir::Graph cut = lower::cut_batch(step, {.slice_samples = samples, .by_width = true});
        EXPECT_LT(outcome_difference(run_cut_steps(*backend, cut), whole), 2e-4)
            << network.name << ", slices of " << samples << ", " << backend->name();
      }
    }
  }
}

/// What the forward half copies from region to region is not held for the backward half.
TEST(CutBatch, CopiesBetweenRegionsEndWithTheirHalf) {
  const ir::Graph cut =
      lower::cut_batch(step_to_cut(narrowing_network(8)), {.slice_samples = 1, .by_width = true});
  int copies = 0;
  for (const ir::Op& op : cut.ops) {
    for (const ir::TensorId id : op.inputs) {
      if (!std::regex_search(cut.tensor(id).name.text(), std::regex("\\.in[0-9]+\\."))) continue;
      EXPECT_EQ(cut.op(cut.tensor(id).producer).phase, op.phase) << op.name.text();
      ++copies;
    }
  }
  EXPECT_GT(copies, 0);
}

/// A batch of vectors that is large by itself: weights are there once, and slices beside them.
TEST(CutBatch, LargeBatchesOfVectorsAreCut) {
  ClassifierBuilder b("vectors", {1024, 4, 64, 64});
  const ir::Graph network = b.finish(b.linear("fc", b.flatten(b.images()), 32));
  const ir::Graph step = step_to_cut(network);
  EXPECT_GT(count(lower::cut_batch(step, {.slice_samples = 64, .by_width = true}), ir::OpKind::linear), 1);
  ClassifierBuilder small("vectors", {64, 4, 64, 64});
  const ir::Graph few = step_to_cut(small.finish(small.linear("fc", small.flatten(small.images()), 32)));
  EXPECT_EQ(count(lower::cut_batch(few, {.slice_samples = 8, .by_width = true}), ir::OpKind::linear), 1);
}

TEST(CutBatch, WhatIsNoLargerThanASliceStaysAsItIs) {
  const ir::Graph step = step_to_cut(varied_network(4));
  EXPECT_EQ(ir::print(lower::cut_batch(step, {4})), ir::print(step));
  EXPECT_EQ(ir::print(lower::cut_batch(step, {0})), ir::print(step));
}

/// What the heap gave out and was not given back.
std::int64_t heap_bytes() {
  const struct mallinfo2 heap = mallinfo2();
  return static_cast<std::int64_t>(heap.uordblks + heap.hblkhd);
}

TEST(CutBatch, AnOpMoreTakesLittle) {
  if (heap_bytes() == 0) GTEST_SKIP() << "a sanitizer's heap does not count";
  const auto backend = kernels::make_cpu_backend();
  struct Taken {
    std::int64_t bytes, ops;
  };
  const auto taken = [&](std::int64_t batch) {
    const ir::Graph step = lower::cut_batch(step_to_cut(segmenting_network(batch)), {2});
    const std::int64_t before = heap_bytes();
    const lower::Executable executable = lower::lower(step, *backend);
    return Taken{heap_bytes() - before, static_cast<std::int64_t>(executable.graph.ops.size())};
  };
  taken(64);
  const Taken few = taken(64), many = taken(640);
  EXPECT_GT(many.ops, 9 * few.ops);
  // The op and its tensors, which have nothing of their own on the heap, the kernel's pointer, its scratch.
  EXPECT_LE((many.bytes - few.bytes) / (many.ops - few.ops), 280);
}

}  // namespace
}  // namespace penstock::testing
