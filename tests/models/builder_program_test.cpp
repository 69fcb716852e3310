#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/classifier_builder.h"

namespace penstock {
namespace {

using Shape = Extents;
using Builder = testing::ClassifierBuilder;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Builder oblong_net() {
  return {"net", {2, 4, 6, 5}};
}

TEST(BuilderProgram, FunctionsBroadcast) {
  Builder net = oblong_net();
  const Value gate = net.apply("sigmoid", {net.global_avg_pool(net.images())});
  EXPECT_EQ(net.shape(net.apply("mul", {net.images(), gate})), (Shape{2, 4, 6, 5}));
  EXPECT_EQ(net.shape(net.expand(gate, {3, 2, 4, 6, 5})), (Shape{3, 2, 4, 6, 5}));
  EXPECT_THAT(
      [&] {
        net.expand(gate, {2, 5, 6, 5});
      },
      ThrowsMessage<UserError>(HasSubstr("does not expand")));
  EXPECT_THAT([&] { net.apply("sill", {gate}); }, ThrowsMessage<UserError>(HasSubstr("sill")));
  EXPECT_THAT(
      [&] {
        net.apply("mul", {net.images(), net.reshape(gate, {8})});
      },
      ThrowsMessage<UserError>(HasSubstr("do not broadcast")));
}

TEST(BuilderProgram, ReductionsTakeAxesFromEitherEnd) {
  Builder net = oblong_net();
  EXPECT_EQ(net.shape(net.reduce(Reduction::mean, net.images(), {-1, 2})), (Shape{2, 4}));
  EXPECT_EQ(net.shape(net.reduce(Reduction::sum, net.images(), {1}, true)), (Shape{2, 1, 6, 5}));
  EXPECT_EQ(net.shape(net.reduce(Reduction::sum, net.images(), {})), (Shape{1}));
  EXPECT_THAT([&] { net.reduce(Reduction::sum, net.images(), {4}); },
              ThrowsMessage<UserError>(HasSubstr("no axis 4")));
  EXPECT_THAT(
      [&] {
        net.reduce(Reduction::sum, net.images(), {1, -3});
      },
      ThrowsMessage<UserError>(HasSubstr("ascending")));
}

TEST(BuilderProgram, SlicesRollsAndStacks) {
  Builder net = oblong_net();
  const Value x = net.images();
  EXPECT_EQ(net.shape(net.slice(x, 2, 5, 3, -2)), (Shape{2, 4, 3, 5}));
  EXPECT_EQ(net.shape(net.flip(x, -1)), (Shape{2, 4, 6, 5}));
  EXPECT_EQ(net.shape(net.roll(x, 2, -2)), (Shape{2, 4, 6, 5}));
  EXPECT_EQ(net.roll(x, 2, 12), x);
  EXPECT_EQ(net.shape(net.stack({x, x, x}, 1)), (Shape{2, 3, 4, 6, 5}));
  EXPECT_THAT([&] { net.slice(x, 2, 3, 4); }, ThrowsMessage<UserError>(HasSubstr("not within axis 2")));
}

TEST(BuilderProgram, MatricesBroadcast) {
  Builder net = oblong_net();
  const Value x = net.images();
  const Value matrix = net.reshape(net.slice(net.reduce(Reduction::sum, x, {0}, false), 0, 0, 1), {6, 5});
  EXPECT_EQ(net.shape(net.matmul(x, matrix, {false, true})), (Shape{2, 4, 6, 6}));
  EXPECT_EQ(net.shape(net.matmul(matrix, x, {true, false})), (Shape{2, 4, 5, 5}));
  const Value vector = net.reduce(Reduction::sum, matrix, {0});
  EXPECT_EQ(net.shape(net.matmul(x, vector)), (Shape{2, 4, 6}));
  EXPECT_EQ(net.shape(net.matmul(vector, net.transpose(x, {0, 1, 3, 2}))), (Shape{2, 4, 6}));
  EXPECT_EQ(net.shape(net.matmul(vector, vector)), (Shape{1}));
}

TEST(BuilderProgram, LossesAreOneNumber) {
  Builder net = oblong_net();
  const Value x = net.images();
  for (const char* loss : {"mse", "l1", "smooth_l1", "huber", "bce_with_logits", "kl"}) {
    EXPECT_EQ(net.shape(net.element_loss(loss, x, x)), (Shape{1})) << loss;
  }
  EXPECT_THAT([&] { net.element_loss("smooth_l1", x, x, 0); },
              ThrowsMessage<UserError>(HasSubstr("positive")));
  EXPECT_THAT([&] { net.element_loss("mean", x, x); }, ThrowsMessage<UserError>(HasSubstr("no loss called")));
  const Value labels = net.reshape(net.argmax(x, 1), {2, 6, 5});
  EXPECT_EQ(net.shape(net.weighted_cross_entropy(x, labels, {0.1F, 255, {}})), (Shape{1}));
  EXPECT_THAT(
      [&] {
        net.weighted_cross_entropy(x, labels, {1.5F, -100, {}});
      },
      ThrowsMessage<UserError>(HasSubstr("smoothing")));
}

}  // namespace
}  // namespace penstock
