#include "memory/budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace penstock {
namespace {

TEST(Budget, ReservesBeforeAndReleasesByDestructor) {
  Budget budget(100);
  {
    const Reservation pool = budget.reserve("pool", 60);
    EXPECT_EQ(pool.size_bytes(), 60);
    EXPECT_EQ(budget.free_bytes(), 40);
    EXPECT_TRUE(budget.fits(40));
    EXPECT_FALSE(budget.fits(41));
  }
  EXPECT_EQ(budget.reserved_bytes(), 0);
  EXPECT_EQ(budget.peak_bytes(), 60);
  EXPECT_TRUE(budget.breakdown().empty());
}

TEST(Budget, RefusalNamesTheNumbersAndTakesNothing) {
  Budget budget(10 * kMiB);
  const Reservation held = budget.reserve("code", 4 * kMiB);
  try {
    const Reservation more = budget.reserve("pool", 7 * kMiB);
    FAIL() << "the budget was exceeded";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(testing::HasSubstr("10.0 MiB"), testing::HasSubstr("pool needs 7.00 MiB"),
                               testing::HasSubstr("4.00 MiB are taken")));
  }
  EXPECT_EQ(budget.reserved_bytes(), 4 * kMiB);
}

TEST(Budget, KeepsTheBreakdownOfThePeak) {
  Budget budget(100);
  const Reservation code = budget.reserve("code", 10);
  {
    const Reservation first = budget.reserve("pool", 30);
    const Reservation second = budget.reserve("pool", 20);
  }
  const Reservation loader = budget.reserve("loader", 40);
  EXPECT_EQ(budget.peak_bytes(), 60);
  EXPECT_EQ(budget.peak_breakdown(), (Budget::Breakdown{{"code", 10}, {"pool", 50}}));
  EXPECT_EQ(budget.breakdown(), (Budget::Breakdown{{"code", 10}, {"loader", 40}}));
}

TEST(Budget, MovedReservationReleasesOnce) {
  Budget budget(100);
  Reservation first = budget.reserve("a", 30);
  Reservation second = std::move(first);
  EXPECT_EQ(budget.reserved_bytes(), 30);
  second = budget.reserve("b", 50);
  EXPECT_EQ(budget.breakdown(), (Budget::Breakdown{{"b", 50}}));
  second.release();
  second.release();
  EXPECT_EQ(budget.reserved_bytes(), 0);
}

TEST(Budget, ThreadsNeverExceedIt) {
  Budget budget(3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&budget] {
      for (int i = 0; i < 500; ++i) {
        try {
          const Reservation one = budget.reserve("thread", 1);
        } catch (const UserError&) {
          continue;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.reserved_bytes(), 0);
  EXPECT_LE(budget.peak_bytes(), 3);
}

}  // namespace
}  // namespace penstock
