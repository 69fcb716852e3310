#include <gtest/gtest.h>

#include "lower/count_ops.h"
#include "lower/cut_outcome.h"
#include "support/classifier_builder.h"

namespace penstock::testing {
namespace {

/// A small U-Net with a kernel of five, one that is dilated, a sum and average pooling beside the usual, on
/// images of `spatial` extents.
ir::Graph segmenting_unet(std::int64_t batch, const std::vector<std::int64_t>& spatial) {
  NetworkBuilder b("unet");
  std::vector<std::int64_t> images{batch, 3}, points{batch};
  images.insert(images.end(), spatial.begin(), spatial.end());
  points.insert(points.end(), spatial.begin(), spatial.end());
  const Value x = b.input("images", DType::f32, images);
  const Value labels = b.input("labels", DType::s32, points);
  const auto block = [&](const std::string& name, Value value, std::int64_t channels, ConvOptions how) {
    return b.relu(b.batch_norm(name + ".norm", b.conv(name, value, channels, how)));
  };
  const Value first = block("first", x, 16, {.kernel = {5}, .padding = {2}});
  const Value wide =
      block("wide", first, 16, {.kernel = {3}, .padding = {2}, .dilation = {2}, .bias = false});
  const Value skip = b.add(first, wide);
  const Value pooled = b.add(b.max_pool(skip, {}), b.avg_pool(skip, {}));
  const Value low = block("low", pooled, 24, {.kernel = {3}, .padding = {1}});
  const Value up = b.conv_transpose("up", low, 8, {.kernel = {2}, .stride = {2}});
  const Value joined = b.concat({skip, up});
  b.classifier(
      b.conv("head", b.tanh(b.conv("last", joined, 10, {.kernel = {3}, .padding = {1}})), 3, {.kernel = {1}}),
      labels);
  return models::graph_of(b.finish());
}

/// Of what has points of images, inputs apart.
std::int64_t widest_bytes(const ir::Graph& graph, std::int64_t batch) {
  std::int64_t bytes = 0;
  for (const ir::Op& op : graph.ops) {
    for (const ir::TensorId id : op.outputs) {
      const ir::Shape& shape = graph.tensor(id).shape;
      if (op.kind != ir::OpKind::input && shape.rank() > 3 && shape[0] == batch)
        bytes = std::max(bytes, graph.tensor(id).size_bytes());
    }
  }
  return bytes;
}

TEST(CutImages, TrainsAsTheWholeDoesWithinRounding) {
  for (const bool fast : {false, true}) {
    const auto backend = fast ? kernels::make_cpu_backend() : kernels::make_reference_backend();
    for (const auto& spatial : {std::vector<std::int64_t>{16, 12}, std::vector<std::int64_t>{8, 6, 4}}) {
      const ir::Graph step = step_to_cut(segmenting_unet(2, spatial));
      const CutOutcome whole = run_cut_steps(*backend, step);
      for (const std::int64_t bands : {2, 4}) {
        const ir::Graph cut = lower::cut_images(step, bands);
        EXPECT_LT(outcome_difference(run_cut_steps(*backend, cut), whole), 2e-4)
            << bands << " bands, " << backend->name();
        EXPECT_LT(widest_bytes(cut, 2) * bands, 3 * widest_bytes(step, 2)) << "a band and what is beside it";
        // Of the images alone, where they are taken apart.
        EXPECT_EQ(count(cut, ir::OpKind::slice), 2 * bands);
      }
    }
  }
}

/// Bands of each slice of the batch; inputs come with what belongs to their slice.
TEST(CutImages, GoesWithSlicesOfTheBatch) {
  const auto backend = kernels::make_cpu_backend();
  const ir::Graph step = step_to_cut(segmenting_unet(3, {16, 12}));
  const ir::Graph cut = lower::cut_images(lower::cut_batch(step, {1}), 2);
  EXPECT_LT(outcome_difference(run_cut_steps(*backend, cut), run_cut_steps(*backend, step)), 2e-4);
  std::vector<std::string> inputs;
  for (const ir::Op& op : cut.ops) {
    if (op.kind == ir::OpKind::input) inputs.push_back(op.name);
  }
  EXPECT_EQ(inputs, (std::vector<std::string>{"images.0", "labels.0", "images.1", "labels.1", "images.2",
                                              "labels.2"}));
}

/// Windows that skip rows and overlap, and rows that cannot be shared out, stay whole and right.
TEST(CutImages, WhatCannotBeCutStaysWhole) {
  const auto backend = kernels::make_reference_backend();
  NetworkBuilder b("mixed");
  const Value images = b.input("images", DType::f32, {2, 3, 12, 8});
  const Value labels = b.input("labels", DType::s32, {2, 6, 4});
  Value x = b.relu(b.conv("same", images, 8, {.kernel = {3}, .padding = {1}}));
  x = b.conv("strided", x, 8, {.kernel = {3}, .stride = {2}, .padding = {1}});
  b.classifier(b.conv("head", x, 3, {.kernel = {3}, .padding = {1}}), labels);
  const ir::Graph step = step_to_cut(models::graph_of(b.finish()));
  const CutOutcome whole = run_cut_steps(*backend, step);
  for (const std::int64_t bands : {2, 4, 5})
    EXPECT_LT(outcome_difference(run_cut_steps(*backend, lower::cut_images(step, bands)), whole), 2e-4)
        << bands;
}

TEST(CutImages, TheDefaultCutsOneImageThatIsTooWide) {
  const auto bands = [](std::int64_t edge, std::int64_t stride) {
    NetworkBuilder b("net");
    const Value images = b.input("images", DType::f32, {1, 1, edge, edge});
    const Value labels = b.input("labels", DType::s32, {1, edge / stride, edge / stride});
    const Value x = b.relu(b.conv("conv", images, 32, {.kernel = {3}, .padding = {1}}));
    b.classifier(b.conv("head", x, 2, {.kernel = {3}, .stride = {stride}, .padding = {1}}), labels);
    const ir::Graph network = models::graph_of(b.finish());
    return lower::default_bands(network, lower::default_slice(network));
  };
  // What the ReLU reads and writes: 2 x 32 floats a point, 256 MiB of 1024 x 1024.
  EXPECT_EQ(bands(512, 1), 1);
  EXPECT_EQ(bands(1024, 1), 2);
  EXPECT_EQ(bands(2048, 1), 8);
  EXPECT_EQ(bands(2048, 2), 1) << "the second convolution skips rows, and reads what is wide";
}

}  // namespace
}  // namespace penstock::testing
