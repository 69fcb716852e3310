#include "training/step_record.h"

#include <gtest/gtest.h>

namespace penstock::training {
namespace {

StepStats took(double compute_seconds) {
  StepStats stats;
  stats.compute_seconds = compute_seconds;
  return stats;
}

TEST(StepRecord, HasAllStepsOfAShortRun) {
  StepRecord record(8);
  for (int step = 0; step < 8; ++step) record.add(10 - step, step == 0 ? 100 : 1 + step, took(step));
  EXPECT_EQ(record.loss(), (std::vector<double>{10, 9, 8, 7, 6, 5, 4, 3}));
  EXPECT_EQ(record.step_seconds().front(), 100);
  EXPECT_EQ(record.every(), 1);
  EXPECT_EQ(record.typical().step_seconds, 5) << "the first is not counted";
  EXPECT_EQ(record.typical().compute_seconds, 4);
  EXPECT_EQ(record.seconds_in_all(), 100 + 35);
}

TEST(StepRecord, OfALongRunTakesNoMoreMemory) {
  StepRecord record(8);
  std::int64_t most = 0;
  for (std::int64_t step = 0; step < 1000; ++step) {
    record.add(static_cast<double>(step), 1, took(1));
    const std::vector<double> loss = record.loss();
    most = std::max<std::int64_t>(most, static_cast<std::int64_t>(loss.size()));
    EXPECT_EQ(loss.front(), 0);
    EXPECT_EQ(loss.back(), static_cast<double>(step)) << "the last is always there";
    for (std::size_t i = 0; i + 1 < loss.size(); ++i) {
      ASSERT_EQ(loss[i], static_cast<double>(static_cast<std::int64_t>(i) * record.every()))
          << "step " << step;
    }
  }
  EXPECT_LE(most, 9) << "eight and the last";
  EXPECT_EQ(record.steps(), 1000);
  EXPECT_EQ(record.every(), 128);
  EXPECT_EQ(record.seconds_in_all(), 1000);
  EXPECT_EQ(record.recent_seconds(), 1);
}

TEST(StepRecord, RecentSecondsAreOfTheNewestSteps) {
  StepRecord record(4);
  for (int step = 0; step < 100; ++step) record.add(0, step < 90 ? 1 : 5, {});
  EXPECT_EQ(record.recent_seconds(), 5);
}

}  // namespace
}  // namespace penstock::training
