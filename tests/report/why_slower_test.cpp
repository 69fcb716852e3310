#include "report/why_slower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Figures planned() {
  Figures figures;
  figures.step_seconds = 7;
  figures.compute_seconds = 6.9;
  figures.stall_seconds = 0.1;
  figures.read_bytes_per_second = 900e6;
  figures.written_bytes_per_second = 800e6;
  return figures;
}

TEST(WhySlower, SaysNothingOfARunAsPlanned) {
  EXPECT_EQ(why_slower(planned(), planned()), "");
  Figures faster = planned();
  faster.step_seconds = 5;
  EXPECT_EQ(why_slower(planned(), faster), "");
  Figures hardly = planned();
  hardly.step_seconds = 7.5;
  hardly.stall_seconds = 0.6;
  EXPECT_EQ(why_slower(planned(), hardly), "");
  EXPECT_EQ(why_slower({}, planned()), "");
}

TEST(WhySlower, NamesTheSlowTier) {
  Figures slow = planned();
  slow.step_seconds = 9;
  slow.stall_seconds = 2.1;
  slow.read_bytes_per_second = 300e6;
  const std::string text = why_slower(planned(), slow);
  EXPECT_THAT(text, HasSubstr("a step takes 9.00 s where 7.00 s were planned (+29 %)"));
  EXPECT_THAT(text, HasSubstr("the tier reads at 300 MB/s where 900 MB/s were measured"));
  EXPECT_THAT(text, HasSubstr("2.00 s of waiting"));
  EXPECT_THAT(text, Not(HasSubstr("writes")));
  EXPECT_THAT(text, Not(HasSubstr("kernels")));
  slow.written_bytes_per_second = 100e6;
  EXPECT_THAT(why_slower(planned(), slow), HasSubstr("were measured and writes at 100 MB/s"));
}

TEST(WhySlower, NamesOtherLoad) {
  Figures slow = planned();
  slow.step_seconds = 10;
  slow.compute_seconds = 9.9;
  EXPECT_THAT(why_slower(planned(), slow),
              HasSubstr("kernels take 3.00 s longer than profiled: other programs"));
  slow.cpu_share = 0.6;
  EXPECT_THAT(why_slower(planned(), slow), HasSubstr("had the cores for 60 % of that time"));
  EXPECT_THAT(why_slower(planned(), slow), Not(HasSubstr("the tier")));
}

TEST(WhySlower, NamesPressureFromOutside) {
  Figures slow = planned();
  slow.step_seconds = 10;
  slow.memory_pressure = 0.3;
  slow.major_faults = 4000;
  const std::string text = why_slower(planned(), slow);
  EXPECT_THAT(text, HasSubstr("short of memory (30 % of the time"));
  EXPECT_THAT(text, HasSubstr("4000 pages"));
}

TEST(WhySlower, AdmitsWhatItDoesNotKnow) {
  Figures slow = planned();
  slow.step_seconds = 10;
  EXPECT_THAT(why_slower(planned(), slow), HasSubstr("between the kernels"));
}

}  // namespace
}  // namespace penstock::report
