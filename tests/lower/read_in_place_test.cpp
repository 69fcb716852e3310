#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "lower/count_ops.h"
#include "lower/lower.h"
#include "lower/step_runner.h"
#include "lower/tensor_view.h"
#include "support/classifier_builder.h"

namespace penstock::testing {
namespace {

using ir::AttentionLayout;
using ir::OpKind;
using lower::TensorView;
using Builder = ClassifierBuilder;

constexpr std::int64_t kBatch = 2, kLength = 5, kHeads = 3, kWidth = 4, kFeatures = kHeads * kWidth;

/// Trains the network as it is written and as it is fused: the same but for rounding.
ir::Graph fused_and_same(const ir::Graph& network) {
  const ir::Graph written = lower::for_training(network);
  ir::Graph fused = lower::fuse(written);
  EXPECT_NO_THROW(ir::verify(fused));
  const auto backend = kernels::make_cpu_backend();
  const lower::Executable one = lower::lower(training_step(written, {}), *backend);
  const lower::Executable two = lower::lower(training_step(fused, {}), *backend);
  StepRunner a(*backend, one), b(*backend, two);
  for (int step = 0; step < 2; ++step) {
    const float want = a.run();
    EXPECT_NEAR(b.run(), want, 1e-5 * std::abs(want));
  }
  const auto want = a.state(), got = b.state();
  EXPECT_EQ(got.size(), want.size());
  for (const auto& [name, values] : want) {
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(got.at(name)[i], values[i], 1e-5) << name;
  }
  return fused;
}

const ir::Op& attention_of(const ir::Graph& graph) {
  return *std::find_if(graph.ops.begin(), graph.ops.end(),
                       [](const ir::Op& op) { return op.kind == OpKind::attention; });
}

/// torch.nn.MultiheadAttention with batch_first, as torch.export writes it.
TEST(ReadInPlace, AttentionOfPyTorchMovesNothing) {
  Builder b("net", {kBatch, kLength, kFeatures});
  const Value turned = b.transpose(b.images(), {1, 0, 2});
  Value qkv = b.reshape(b.linear("in", turned, 3 * kFeatures), {1, kLength, kBatch, 3, kFeatures});
  qkv = b.reshape(b.transpose(qkv, {3, 1, 2, 0, 4}), {3, kLength, kBatch, kFeatures});
  const auto part = [&](std::int64_t which) {
    const Value rows = b.reshape(b.slice(qkv, 0, which, 1), {kLength, kBatch * kHeads, kWidth});
    return b.reshape(b.transpose(rows, {1, 0, 2}), {kBatch, kHeads, kLength, kWidth});
  };
  const Value seen = b.attention(part(0), part(1), part(2), {}, {.heads = kHeads});
  const Value rows = b.reshape(b.transpose(seen, {2, 0, 1, 3}), {kLength * kBatch, kFeatures});
  const Value out = b.reshape(b.linear("out", rows, kFeatures), {kLength, kBatch, kFeatures});
  const ir::Graph graph = fused_and_same(b.finish(b.linear("fc", b.flatten(b.transpose(out, {1, 0, 2})), 4)));
  EXPECT_EQ(count(graph, OpKind::transpose) + count(graph, OpKind::split) + count(graph, OpKind::slice), 0);
  EXPECT_EQ(attention_of(graph).attrs_as<ir::AttentionAttrs>().layout, AttentionLayout::packed);
}

/// Three layers, and a mask: as transformers writes it.
TEST(ReadInPlace, AttentionOfThreeLayersReadsTheirRows) {
  Builder b("net", {kBatch, kLength, kFeatures});
  const auto heads = [&](const char* name) {
    const Value rows = b.linear(name, b.images(), kFeatures);
    return b.transpose(b.reshape(rows, {kBatch, kLength, kHeads, kWidth}), {0, 2, 1, 3});
  };
  const Value mask = b.reshape(b.slice(b.images(), 2, 0, kLength), {kBatch, 1, kLength, kLength});
  const Value seen = b.attention(heads("q"), heads("k"), heads("v"), mask, {.heads = kHeads});
  const Value rows = b.reshape(b.transpose(seen, {0, 2, 1, 3}), {kBatch, kLength, kFeatures});
  const ir::Graph graph =
      fused_and_same(b.finish(b.linear("fc", b.flatten(b.linear("out", rows, kFeatures)), 4)));
  EXPECT_EQ(count(graph, OpKind::transpose), 0);
  EXPECT_EQ(attention_of(graph).attrs_as<ir::AttentionAttrs>().layout, AttentionLayout::rows);
}

TEST(ReadInPlace, WhatIsWantedTurnedIsTurned) {
  Builder b("net", {kBatch, kLength, kFeatures});
  const Value rows = b.linear("first", b.transpose(b.images(), {1, 0, 2}), 6);
  const Value position = b.parameter("position", {kLength, 1, 1});
  const Value moved = b.apply("add", {rows, position});
  const ir::Graph graph =
      fused_and_same(b.finish(b.linear("fc", b.flatten(b.transpose(moved, {1, 0, 2})), 4)));
  EXPECT_EQ(count(graph, OpKind::transpose), 2);
}

TEST(ReadInPlace, TurningThereAndBackIsNothing) {
  Builder b("net", {kBatch, kLength, kFeatures});
  const Value back =
      b.transpose(b.reshape(b.transpose(b.images(), {2, 0, 1}), {kFeatures, kBatch, kLength}), {1, 2, 0});
  const ir::Graph graph = fused_and_same(b.finish(b.linear("fc", b.flatten(back), 4)));
  EXPECT_EQ(count(graph, OpKind::transpose), 0);
}

/// A tensor of indices into its base, moved for real beside its view.
struct Moved {
  ir::Shape shape;
  std::vector<std::int64_t> indices;
};

Moved transposed(const Moved& from, const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> dims, place(order.size(), 0);
  for (const std::int64_t axis : order) dims.push_back(from.shape[static_cast<std::size_t>(axis)]);
  Moved to{ir::Shape(dims), {}};
  for (std::size_t i = 0; i < from.indices.size(); ++i) {
    std::vector<std::int64_t> at(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) at[static_cast<std::size_t>(order[k])] = place[k];
    std::int64_t index = 0;
    for (std::size_t k = 0; k < order.size(); ++k) index = index * from.shape[k] + at[k];
    to.indices.push_back(from.indices[static_cast<std::size_t>(index)]);
    for (std::size_t k = order.size(); k-- > 0 && ++place[k] == dims[k];) place[k] = 0;
  }
  return to;
}

Moved sliced(const Moved& from, std::size_t axis, std::int64_t begin, std::int64_t extent) {
  Moved to{from.shape, {}};
  to.shape.set(axis, extent);
  const std::int64_t inner = from.shape.elements(axis + 1, from.shape.rank());
  for (std::size_t i = 0; i < from.indices.size(); ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i) / inner % from.shape[axis];
    if (at >= begin && at < begin + extent) to.indices.push_back(from.indices[i]);
  }
  return to;
}

/// The view of `indices`, if loops over the base are what they are: found by trying both.
void expect_view(const TensorView& view, const Moved& moved) {
  // A view tells its elements through slices of one element.
  const ir::Shape flat{moved.shape.elements()};
  ASSERT_EQ(view.elements(), flat.elements());
  for (std::int64_t i = 0; i < flat.elements(); ++i) {
    std::optional<TensorView> one = view;
    ir::Shape shape = moved.shape;
    std::int64_t inner = flat.elements(), left = i;
    for (std::size_t axis = 0; axis < shape.rank() && one; ++axis) {
      inner /= shape[axis];
      one = one->sliced(shape, axis, left / inner, 1);
      shape.set(axis, 1);
      left %= inner;
    }
    if (!one) return;  // An axis that is several in the base cannot be cut; other cases reach it.
    ASSERT_EQ(one->offset(), moved.indices[static_cast<std::size_t>(i)]);
  }
}

TEST(TensorView, FollowsRandomMoves) {
  std::mt19937 random(7);
  int followed = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Moved moved{{4, 6, 2, 3}, std::vector<std::int64_t>(144)};
    std::iota(moved.indices.begin(), moved.indices.end(), 0);
    std::optional<TensorView> view = TensorView::whole(0, 144);
    for (int move = 0; move < 4 && view; ++move) {
      const std::size_t rank = moved.shape.rank();
      if (const auto kind = random() % 3; kind == 0) {
        std::vector<std::int64_t> order(rank);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);
        view = view->transposed(moved.shape, order);
        moved = transposed(moved, order);
      } else if (kind == 1) {
        const std::size_t axis = random() % rank;
        const auto extent =
            static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(moved.shape[axis])) + 1;
        const std::int64_t begin = moved.shape[axis] - extent;
        view = view->sliced(moved.shape, axis, begin, extent);
        moved = sliced(moved, axis, begin, extent);
      } else if (rank > 1) {  // Two axes become one.
        const std::size_t axis = random() % (rank - 1);
        std::vector<std::int64_t> dims = moved.shape.dims();
        dims[axis] *= dims[axis + 1];
        dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
        moved.shape = ir::Shape(dims);
      }
    }
    if (!view) continue;
    ++followed;
    expect_view(*view, moved);
  }
  EXPECT_GT(followed, 200);
}

}  // namespace
}  // namespace penstock::testing
