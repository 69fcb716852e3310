#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/parse.h"

namespace penstock::cli {
namespace {

TEST(Schedule, Constant) {
  const Schedule schedule = parse_schedule("constant");
  EXPECT_DOUBLE_EQ(schedule.at(0, 100, 0.1), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(99, 100, 0.1), 0.1);
}

TEST(Schedule, StepsDown) {
  const Schedule schedule = parse_schedule("step:30,0.5");
  EXPECT_DOUBLE_EQ(schedule.at(29, 100, 0.8), 0.8);
  EXPECT_DOUBLE_EQ(schedule.at(30, 100, 0.8), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(60, 100, 0.8), 0.2);
  EXPECT_NEAR(parse_schedule("step:30").at(30, 100, 1.0), 0.1, 1e-12);
}

TEST(Schedule, CosineEndsNearZeroAfterWarmUp) {
  const Schedule schedule = parse_schedule("cosine,warmup:10");
  EXPECT_DOUBLE_EQ(schedule.at(0, 110, 1.0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(9, 110, 1.0), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(10, 110, 1.0), 1.0);
  EXPECT_NEAR(schedule.at(60, 110, 1.0), 0.5, 1e-9);
  EXPECT_LT(schedule.at(109, 110, 1.0), 0.001);
}

TEST(Schedule, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {"", "linear", "step", "step:0", "step:x", "cosine,0.5", "constant,warmup:-1", "step:3,0.1,0.2"}) {
    EXPECT_THROW(parse_schedule(text), UserError) << text;
  }
}

TEST(Words, BecomeTypesOrAreRefused) {
  EXPECT_EQ(parse_tier("disk"), TierKind::disk);
  EXPECT_EQ(parse_tier("disk-threads"), TierKind::disk_threads);
  EXPECT_EQ(parse_tier("ram"), TierKind::ram);
  EXPECT_THROW(parse_tier("floppy"), UserError);
  EXPECT_EQ(parse_verify("off"), VerifyMode::off);
  EXPECT_EQ(parse_verify("sampled"), VerifyMode::sampled);
  EXPECT_EQ(parse_verify("full"), VerifyMode::full);
  EXPECT_THROW(parse_verify("some"), UserError);
  EXPECT_EQ(parse_pool("auto"), std::nullopt);
  EXPECT_EQ(parse_pool("packed"), PoolKind::packed);
  EXPECT_EQ(parse_pool("virtual"), PoolKind::paged);
  EXPECT_THROW(parse_pool("pond"), UserError);
  EXPECT_EQ(parse_bandwidth("200MB/s"), 200'000'000);
  EXPECT_EQ(parse_bandwidth("1GiB"), std::int64_t{1} << 30);
  for (const char* text : {"", "0", "-1MB/s", "fast", "200MB/min"})
    EXPECT_THROW(parse_bandwidth(text), UserError) << text;
  EXPECT_EQ(parse_memory_budget("50%", 1000), 500);
  EXPECT_EQ(parse_memory_budget("1KiB", 1000), 1024);
  for (const char* text : {"0", "0%", "101%", "%", "x%", "1GiBB"})
    EXPECT_THROW(parse_memory_budget(text, 1000), UserError) << text;
}

}  // namespace
}  // namespace penstock::cli
