#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "ir/infer.h"
#include "kernels/kernel.h"

namespace penstock::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

/// An f32 array with its shape.
struct Array {
  ir::Shape shape;
  std::vector<float> values;
};

/// One forward op with one interesting output.
std::vector<float> run(ir::OpKind kind, const ir::Attrs& attrs, const std::vector<Array>& inputs,
                       const StepContext& step = {}) {
  ir::Graph graph;
  ir::Op op{kind, ir::Phase::forward, "op", {}, {}, attrs};
  std::vector<ir::Shape> shapes;
  std::vector<const void*> in;
  for (const Array& input : inputs) {
    op.inputs.push_back(graph.add_tensor("x", ir::DType::f32, input.shape, ir::Role::activation));
    shapes.push_back(input.shape);
    in.push_back(input.values.data());
  }
  const ir::Inferred inferred = ir::infer_shapes(kind, attrs, shapes);
  require(inferred.problem.empty(), inferred.problem.c_str());
  std::vector<std::vector<float>> results;
  std::vector<void*> out;
  for (const ir::Shape& shape : inferred.shapes) {
    op.outputs.push_back(graph.add_tensor("y", ir::DType::f32, shape, ir::Role::activation));
    results.emplace_back(static_cast<std::size_t>(shape.elements()));
  }
  for (auto& result : results) out.push_back(result.data());
  const std::vector<const ir::Layout*> given(op.inputs.size(), nullptr);
  const Selection selection = make_reference_backend()->select(graph, op, given);
  EXPECT_EQ(selection.kernel->implementation(), "reference");
  selection.kernel->run({in, out, nullptr, &step});
  return results[0];
}

// The expected values below are PyTorch's.

TEST(Reference, ConvTransposeWithOutputPadding) {
  const ir::ConvAttrs attrs{{2}, {1}, {1}, {1}, {1}, 1, false};
  EXPECT_THAT(run(ir::OpKind::conv_transpose, attrs, {{{1, 1, 3}, {1, 2, 3}}, {{1, 1, 3}, {1, 10, 100}}}),
              ElementsAre(10, 102, 20, 203, 30, 300));
}

TEST(Reference, UpsampleLinearDoesNotAlignCorners) {
  EXPECT_THAT(run(ir::OpKind::upsample, ir::UpsampleAttrs{{2}, true}, {{{1, 1, 3}, {0, 4, 8}}}),
              ElementsAre(0, 1, 3, 5, 7, 8));
}

TEST(Reference, AveragePoolCountsPaddingOrNot) {
  ir::PoolAttrs attrs{{3}, {2}, {1}, {1}, true};
  const Array x{{1, 1, 3}, {3, 6, 9}};
  EXPECT_THAT(run(ir::OpKind::avg_pool, attrs, {x}), ElementsAre(3, 5));
  attrs.count_include_pad = false;
  EXPECT_THAT(run(ir::OpKind::avg_pool, attrs, {x}), ElementsAre(4.5, 7.5));
}

TEST(Reference, LrnOfEvenSizeLooksFurtherBack) {
  // Windows {c - 1, c}: 1 + 2 / 2 * (sum of squares), beta 1.
  EXPECT_THAT(run(ir::OpKind::lrn, ir::LrnAttrs{2, 2, 1, 1}, {{{1, 3, 1}, {1, 2, 3}}}),
              Pointwise(FloatNear(1e-6F), std::vector<float>{1.0F / 2, 2.0F / 6, 3.0F / 14}));
}

TEST(Reference, AdamCorrectsTheBiasOfItsFirstStep) {
  StepContext step;
  step.learning_rate = 0.1;
  // At step 0 the corrected moments are the gradient and its square: a step of the learning rate.
  EXPECT_THAT(run(ir::OpKind::adam_update, ir::AdamAttrs{},
                  {{{2}, {1, 1}}, {{2}, {5, -3}}, {{2}, {0, 0}}, {{2}, {0, 0}}}, step),
              Pointwise(FloatNear(1e-6F), std::vector<float>{0.9F, 1.1F}));
}

TEST(Reference, NesterovLooksAhead) {
  StepContext step;
  step.learning_rate = 0.5;
  const std::vector<Array> state{{{1}, {1}}, {{1}, {2}}, {{1}, {4}}};
  EXPECT_THAT(run(ir::OpKind::sgd_update, ir::SgdAttrs{0.25F, 0, false}, state, step), ElementsAre(-0.5));
  EXPECT_THAT(run(ir::OpKind::sgd_update, ir::SgdAttrs{0.25F, 0, true}, state, step), ElementsAre(-0.375));
}

TEST(Reference, MaxPoolTakesTheFirstOfEqualValues) {
  ir::Graph graph;
  const ir::PoolAttrs attrs{{3}, {3}, {0}, {0}};
  const auto x = graph.add_tensor("x", ir::DType::f32, {1, 1, 3}, ir::Role::activation);
  const auto y = graph.add_tensor("y", ir::DType::f32, {1, 1, 1}, ir::Role::activation);
  const auto indices = graph.add_tensor("indices", ir::DType::u8, {1, 1, 1}, ir::Role::workspace);
  const ir::Op op{ir::OpKind::max_pool, ir::Phase::forward, "pool", {x}, {y, indices}, attrs};
  const Selection selection =
      make_reference_backend()->select(graph, op, std::vector<const ir::Layout*>{nullptr});
  EXPECT_EQ(selection.outputs[1].size_bytes(), 4);
  const std::vector<float> values{1, 7, 7};
  float largest = 0;
  std::int32_t index = -1;
  const std::vector<const void*> in{values.data()};
  const std::vector<void*> out{&largest, &index};
  selection.kernel->run({in, out, nullptr, nullptr});
  EXPECT_EQ(largest, 7);
  EXPECT_EQ(index, 1);
}

class ReferenceDropout : public ::testing::Test {
 protected:
  static std::vector<float> masked(std::int64_t batch, const StepContext& step, std::uint32_t key = 1) {
    const ir::Shape shape{batch, 50};
    return run(ir::OpKind::dropout, ir::DropoutAttrs{0.25F, key},
               {{shape, std::vector<float>(static_cast<std::size_t>(shape.elements()), 3)}}, step);
  }
};

TEST_F(ReferenceDropout, KeepsTheExpectedShareAndScalesIt) {
  const std::vector<float> y = masked(200, {});
  std::int64_t kept = 0;
  for (const float value : y) {
    ASSERT_TRUE(value == 0 || value == 4) << value;
    kept += value == 4 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(kept) / 10000, 0.75, 0.02);
}

TEST_F(ReferenceDropout, IsAFunctionOfSeedStepAndKey) {
  StepContext step;
  step.seed = 9;
  step.step = 4;
  const std::vector<float> y = masked(4, step);
  EXPECT_EQ(masked(4, step), y);
  EXPECT_NE(masked(4, step, 2), y);
  step.step = 5;
  EXPECT_NE(masked(4, step), y);
  step.step = 4;
  step.seed = 10;
  EXPECT_NE(masked(4, step), y);
}

TEST_F(ReferenceDropout, OfAPartOfTheBatchIsThatPartOfTheWhole) {
  StepContext step;
  const std::vector<float> whole = masked(4, step);
  step.first_sample = 3;
  EXPECT_EQ(masked(1, step), std::vector<float>(whole.begin() + 150, whole.end()));
}

}  // namespace
}  // namespace penstock::kernels
