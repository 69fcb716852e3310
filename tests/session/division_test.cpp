#include "session/division.h"

#include <gtest/gtest.h>

namespace penstock::session {
namespace {

Shares some() {
  Shares shares;
  shares.budget_bytes = 1000 * kMiB;
  shares.resident_bytes = 120 * kMiB;
  shares.resident_before_bytes = 90 * kMiB;
  shares.conversion_bytes = 5 * kMiB;
  shares.planner_bytes = 10 * kMiB;
  shares.reserved_bytes = {{"loader", 7 * kMiB}};
  return shares;
}

TEST(Division, OfTheProcessCountsAllThatIsResident) {
  EXPECT_FALSE(divide(some()).beside.contains("plan"));
  Shares planned = some();
  planned.plan_bytes = 3 * kMiB;
  EXPECT_EQ(divide(planned).beside.at("plan"), 3 * kMiB);
  EXPECT_EQ(divide(planned).pool_bytes(), divide(some()).pool_bytes() - 3 * kMiB);
  const fit::Division division = divide(some());
  EXPECT_EQ(division.beside.at("program"), 120 * kMiB);
  EXPECT_EQ(division.beside.at("loader"), 7 * kMiB);
  EXPECT_EQ(division.beside.at("conversion"), 5 * kMiB);
  EXPECT_EQ(division.beside.at("planner"), 10 * kMiB);
  EXPECT_EQ(division.pool_bytes(), (1000 - 120 - 7 - 5 - 10) * kMiB - kMarginBytes);
}

TEST(Division, OfTheSessionCountsWhatItAdds) {
  Shares shares = some();
  shares.scope = BudgetScope::session;
  EXPECT_EQ(divide(shares).beside.at("program"), 30 * kMiB);
  shares.resident_before_bytes = 200 * kMiB;  // the process gave memory back meanwhile
  EXPECT_FALSE(divide(shares).beside.contains("program"));
}

/// Measuring kernels touches code and stacks that training touches anyway: a budget that was large enough
/// before is so afterwards.
TEST(Division, WhatKernelsHaveTouchedIsNotCountedTwice) {
  const std::int64_t before = divide(some()).pool_bytes();
  for (const std::int64_t touched : {std::int64_t{0}, 3 * kMiB, 9 * kMiB}) {
    Shares shares = some();
    shares.resident_bytes += touched;
    shares.touched_bytes = touched;
    EXPECT_EQ(divide(shares).pool_bytes(), before);
  }
  Shares shares = some();
  shares.touched_bytes = 100 * kMiB;
  EXPECT_EQ(divide(shares).beside.at("margin"), kLeastMarginBytes);
}

TEST(Division, SetsNothingAsideToPlanAgainWhereThatTakesTooMuch) {
  Shares shares = some();
  shares.planner_bytes = shares.budget_bytes / kPlannerShare + 1;
  EXPECT_FALSE(divide(shares).beside.contains("planner"));
}

}  // namespace
}  // namespace penstock::session
