#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "onnx/evaluate.h"
#include "onnx/file_maker.h"

namespace penstock::onnx {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// What a node makes of x, whose elements are 0, 1, 2, ...
class OnnxOps : public OnnxTest {
 protected:
  Floats of(const std::string& op, const Extents& x, const std::vector<Message>& attributes = {},
            const std::vector<Message>& more = {}) {
    FileMaker file;
    file.input("x", x);
    std::vector<std::string> inputs{"x"};
    for (std::size_t i = 0; i < more.size(); ++i) {
      inputs.push_back("more" + std::to_string(i));
      file.weights(more[i]);
    }
    file.node(op, inputs, {"y"}, attributes).output("y");
    std::int64_t count = 1;
    for (const std::int64_t extent : x) count *= extent;
    Floats values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i));
    const ImportedModel model = made(file, {.batch = x[0]}, 18);
    shape_ = model.outputs().at("y").dims;
    return evaluate(model, {{"x", values}})["y"];
  }
  Extents shape_;
};

TEST_F(OnnxOps, Reductions) {
  EXPECT_THAT(of("ReduceSum", {2, 3}, {int_attribute("keepdims", 0)}, {integers("more0", {1})}),
              ElementsAre(3, 12));
  EXPECT_EQ(shape_, Extents{2});
  EXPECT_THAT(of("ReduceMax", {2, 3}, {int_attribute("keepdims", 0)}), ElementsAre(5));
  EXPECT_EQ(shape_, Extents{});
  EXPECT_THAT(of("CumSum", {2, 3}, {int_attribute("reverse", 1)}, {integers("more0", {1})}),
              ElementsAre(3, 3, 2, 12, 9, 5));
}

TEST_F(OnnxOps, Shapes) {
  EXPECT_THAT(of("Tile", {1, 2}, {}, {integers("more0", {2, 2})}), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_THAT(of("DepthToSpace", {1, 4, 1, 2}, {int_attribute("blocksize", 2)}),
              ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(
      of("Slice", {1, 5}, {},
         {integers("more0", {-1}), integers("more1", {0}), integers("more2", {1}), integers("more3", {-2})}),
      ElementsAre(4, 2));
  EXPECT_THAT(of("Gather", {2, 3}, {int_attribute("axis", 1)}, {integers("more0", {2, 0, 2, -1})}),
              ElementsAre(2, 0, 2, 2, 5, 3, 5, 5));
  EXPECT_THAT(of("Trilu", {2, 2}), ElementsAre(0, 1, 0, 3));
}

TEST_F(OnnxOps, Resizing) {
  const std::vector<Message> sizes{floats("more0", {0}, {}), floats("more1", {0}, {}),
                                   integers("more2", {1, 1, 1, 4})};
  EXPECT_THAT(of("Resize", {1, 1, 1, 3}, {}, sizes), ElementsAre(0, 1, 1, 2));
  EXPECT_EQ(shape_, (Extents{1, 1, 1, 4}));
}

TEST_F(OnnxOps, ProductsByLetters) {
  Message equation;
  equation.text(1, "equation").text(4, "ab,cb->ca").integer(20, 3);
  EXPECT_THAT(of("Einsum", {2, 2}, {equation}, {floats("more0", {1, 2}, {10, 1})}), ElementsAre(1, 23));
}

TEST_F(OnnxOps, CeilModeLeavesOutWindowsBeyondTheInput) {
  EXPECT_THAT(of("MaxPool", {1, 1, 1, 4},
                 {ints_attribute("kernel_shape", {1, 3}), ints_attribute("strides", {1, 2}),
                  int_attribute("ceil_mode", 1)}),
              ElementsAre(2, 3));
  EXPECT_THAT(of("AveragePool", {1, 1, 1, 4},
                 {ints_attribute("kernel_shape", {1, 3}), ints_attribute("strides", {1, 2}),
                  int_attribute("ceil_mode", 1), int_attribute("count_include_pad", 1)}),
              ElementsAre(FloatEq(1), FloatEq(2.5F)));
}

TEST_F(OnnxOps, WhatIsNotKnownBeforeTheStepIsRefused) {
  FileMaker file;
  file.input("x", {2, 3}).input("shape", {2}, 7).node("Reshape", {"x", "shape"}, {"y"}).output("y");
  EXPECT_THAT([&] { made(file); }, ThrowsMessage<UserError>(HasSubstr("must be known before the step")));
  EXPECT_EQ(made(file, {.known = {{"shape", {{2}, {3, 2}}}}}).outputs().at("y").dims, (Extents{3, 2}));
}

}  // namespace
}  // namespace penstock::onnx
