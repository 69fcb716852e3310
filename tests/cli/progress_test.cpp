#include "cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Progress sample() {
  Progress progress;
  progress.step = 12;
  progress.steps = 100;
  progress.loss = 2.3012;
  progress.step_seconds = 5;
  progress.stats.compute_seconds = 4.8;
  progress.stats.recompute_seconds = 0.2;
  progress.stats.stall_seconds = 0.15;
  progress.stats.stall_seconds = 0.03 * progress.step_seconds;
  progress.samples_per_second = 6.12;
  progress.seconds_left = 80;
  progress.stats.swapped_in_bytes = 1550000000;
  progress.stats.swapped_out_bytes = 1450000000;
  progress.memory_bytes = 1000 << 20;
  progress.budget_bytes = 1 << 30;
  return progress;
}

TEST(Progress, OneLineSaysAll) {
  EXPECT_EQ(progress_text(sample()),
            "step 12/100  loss 2.3012  6.1 images/s  0.98 GiB of 1.00 GiB  stall 3 %  in 310 MB/s  out 290 "
            "MB/s  1:20 left");
}

TEST(Progress, NeverIsWiderThanTheTerminal) {
  for (int width = 1; width < 130; ++width) {
    const std::string text = progress_text(sample(), width);
    EXPECT_LE(text.size(), static_cast<std::size_t>(width));
    EXPECT_FALSE(text.empty());
  }
  EXPECT_EQ(progress_text(sample(), 200), progress_text(sample()));
  // What matters most stays longest.
  EXPECT_EQ(progress_text(sample(), 83),
            "step 12/100  loss 2.3012  6.1 images/s  0.98 GiB of 1.00 GiB  stall 3 %  1:20 left");
  EXPECT_EQ(progress_text(sample(), 40), "step 12/100  loss 2.3012  1:20 left");
}

TEST(Progress, InMemoryThereIsNoTierToTellOf) {
  Progress progress = sample();
  progress.stats.swapped_in_bytes = progress.stats.swapped_out_bytes = 0;
  EXPECT_THAT(progress_text(progress), Not(HasSubstr("stall")));
  EXPECT_THAT(progress_text(progress), Not(HasSubstr("MB/s")));
  progress.step = progress.steps;
  EXPECT_THAT(progress_text(progress), Not(HasSubstr("left")));
}

TEST(Progress, VerboseTellsWhereTheTimeWent) {
  const std::string text = step_text(sample());
  EXPECT_THAT(text, HasSubstr("5.000 s: 4.800 s in kernels (0.200 s again), 0.150 s stalled"));
  EXPECT_THAT(text, HasSubstr("in 1.44 GiB (310 MB/s), out 1.35 GiB (290 MB/s)"));
}

TEST(Progress, TimesAreReadable) {
  EXPECT_EQ(format_seconds(44.6), "45 s");
  EXPECT_EQ(format_seconds(200), "3:20");
  EXPECT_EQ(format_seconds(7500), "2:05:00");
}

}  // namespace
}  // namespace penstock::cli
