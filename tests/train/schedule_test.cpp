#include "train/schedule.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace penstock::training {
namespace {

TEST(Schedule, Constant) {
  const Schedule schedule = Schedule::parse("constant", 0.1, 100);
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(99), 0.1);
}

TEST(Schedule, StepsDown) {
  const Schedule schedule = Schedule::parse("step:30,0.5", 0.8, 100);
  EXPECT_DOUBLE_EQ(schedule.at(29), 0.8);
  EXPECT_DOUBLE_EQ(schedule.at(30), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(60), 0.2);
  EXPECT_NEAR(Schedule::parse("step:30", 1.0, 100).at(30), 0.1, 1e-12);
}

TEST(Schedule, CosineEndsNearZeroAfterWarmUp) {
  const Schedule schedule = Schedule::parse("cosine,warmup:10", 1.0, 110);
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(9), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(10), 1.0);
  EXPECT_NEAR(schedule.at(60), 0.5, 1e-9);
  EXPECT_LT(schedule.at(109), 0.001);
}

TEST(Schedule, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {"", "linear", "step", "step:0", "step:x", "cosine,0.5", "constant,warmup:-1", "step:3,0.1,0.2"}) {
    EXPECT_THROW(Schedule::parse(text, 0.1, 10), UserError) << text;
  }
}

}  // namespace
}  // namespace penstock::training
