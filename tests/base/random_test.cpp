#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace penstock {
namespace {

TEST(CounterRandom, IsAFunctionOfItsKeyAndCounter) {
  const CounterRandom a(7, RandomPurpose::dropout, 3, 11);
  const CounterRandom b(7, RandomPurpose::dropout, 3, 11);
  EXPECT_EQ(a.bits(1000), b.bits(1000));
  EXPECT_NE(a.bits(1000), CounterRandom(8, RandomPurpose::dropout, 3, 11).bits(1000));
  EXPECT_NE(a.bits(1000), CounterRandom(7, RandomPurpose::shuffle, 3, 11).bits(1000));
  EXPECT_NE(a.bits(1000), CounterRandom(7, RandomPurpose::dropout, 4, 11).bits(1000));
  EXPECT_NE(a.bits(1000), CounterRandom(7, RandomPurpose::dropout, 3, 12).bits(1000));
}

TEST(CounterRandom, HasTheMomentsItShould) {
  const CounterRandom random(1, RandomPurpose::initialise, 0, 0);
  constexpr int kCount = 100000;
  double uniform_sum = 0;
  double normal_sum = 0;
  double normal_squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const float u = random.uniform(i);
    ASSERT_GE(u, 0.0F);
    ASSERT_LT(u, 1.0F);
    uniform_sum += u;
    const double n = random.normal(i);
    normal_sum += n;
    normal_squares += n * n;
  }
  EXPECT_NEAR(uniform_sum / kCount, 0.5, 0.01);
  EXPECT_NEAR(normal_sum / kCount, 0.0, 0.02);
  EXPECT_NEAR(normal_squares / kCount, 1.0, 0.02);
}

TEST(CounterRandom, FillsAsItDraws) {
  const CounterRandom random(5, RandomPurpose::initialise, 0, 9);
  std::vector<float> uniform(1003);
  std::vector<float> normal(1003);
  random.fill_uniform(uniform.data(), 1003, 2.0F);
  random.fill_normal(normal.data(), 1003, 0.5F);
  for (std::size_t i = 0; i < uniform.size(); ++i) {
    EXPECT_EQ(uniform[i], (2.0F * random.uniform(i) - 1.0F) * 2.0F);
    EXPECT_EQ(normal[i], random.normal(i) * 0.5F);
  }
}

}  // namespace
}  // namespace penstock
