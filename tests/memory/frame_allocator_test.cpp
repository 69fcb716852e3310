#include "memory/frame_allocator.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace penstock {
namespace {

TEST(RunSet, MergesAndSplits) {
  RunSet set;
  set.add({0, 4});
  set.add({8, 4});
  EXPECT_EQ(set.longest(), (UnitRun{0, 4}));
  set.add({4, 4});
  EXPECT_EQ(set.first(), (UnitRun{0, 12}));
  set.remove({5, 2});
  EXPECT_EQ(set.best_fit(5), (UnitRun{0, 5}));
  EXPECT_EQ(set.best_fit(6), std::nullopt);
  EXPECT_EQ(set.units(), 10);
  EXPECT_THROW(set.add({4, 1}), InternalError);
  EXPECT_THROW(set.remove({5, 1}), InternalError);
}

TEST(FrameAllocator, BodiesTakeWholeFramesAndTailsShareOne) {
  FrameAllocator allocator(8 * 32, 32);
  const std::vector<UnitRun> first = allocator.allocate(2 * 32 + 5);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].first % 32, 0);
  EXPECT_EQ(first[0].count, 64);
  const std::vector<UnitRun> second = allocator.allocate(32 + 6);
  EXPECT_EQ(second[1].first / 32, first[1].first / 32);
  // Five frames are whole yet, and one is broken.
  const std::vector<UnitRun> rest = allocator.allocate(4 * 32);
  EXPECT_EQ(rest.size(), 1U);
}

TEST(FrameAllocator, AnyFreeUnitServes) {
  FrameAllocator allocator(4 * 8 + 3, 8);
  std::vector<std::vector<UnitRun>> singles;
  for (int i = 0; i < 35; ++i) singles.push_back(allocator.allocate(1));
  EXPECT_EQ(allocator.free_units(), 0);
  EXPECT_THROW(allocator.allocate(1), InternalError);
  for (const auto& single : singles) {
    if (single[0].first % 2 == 0) allocator.release(single);
  }
  // Every second unit is free and no two together: a request for two frames and more still succeeds.
  const std::vector<UnitRun> scattered = allocator.allocate(18);
  EXPECT_EQ(scattered.size(), 18U);
  EXPECT_EQ(allocator.free_units(), 0);
}

TEST(FrameAllocator, TakesTheVeryUnitsThatAreAskedFor) {
  FrameAllocator allocator(4 * 8 + 3, 8);
  allocator.take({6, 12});
  EXPECT_EQ(allocator.free_units(), 23);
  EXPECT_THROW(allocator.take({17, 2}), InternalError);
  allocator.release({{6, 12}});
  EXPECT_EQ(allocator.free_units(), 35);
  // All frames are whole again.
  EXPECT_EQ(allocator.allocate(32), (std::vector<UnitRun>{{0, 32}}));
}

TEST(FrameAllocator, UnitsThatAreNotThereYetComeByRelease) {
  FrameAllocator allocator(4 * 8, 8, 12);
  EXPECT_EQ(allocator.free_units(), 12);
  EXPECT_EQ(allocator.allocate(12), (std::vector<UnitRun>{{0, 12}}));
  EXPECT_THROW(allocator.allocate(1), InternalError);
  allocator.release({{16, 16}});
  EXPECT_EQ(allocator.allocate(16), (std::vector<UnitRun>{{16, 16}}));
}

TEST(FrameAllocator, RandomRequestsNeverOverlapNorFail) {
  const CounterRandom random(7, RandomPurpose::synthetic, 0, 1);
  constexpr int kUnits = 16 * 20 + 5;
  FrameAllocator allocator(kUnits, 16);
  std::vector<std::vector<UnitRun>> held;
  std::set<int> used;
  for (std::uint32_t i = 0; i < 4000; ++i) {
    const int want = 1 + static_cast<int>(random.bits(3 * i) % 60);
    if (random.bits(3 * i + 1) % 2 == 0 && want <= allocator.free_units()) {
      held.push_back(allocator.allocate(want));
      int got = 0;
      for (const UnitRun& run : held.back()) {
        got += run.count;
        for (int unit = run.first; unit < run.first + run.count; ++unit) {
          ASSERT_TRUE(unit < kUnits && used.insert(unit).second);
        }
      }
      ASSERT_EQ(got, want);
    } else if (!held.empty()) {
      const std::size_t victim = random.bits(3 * i + 2) % held.size();
      for (const UnitRun& run : held[victim]) {
        for (int unit = run.first; unit < run.first + run.count; ++unit) used.erase(unit);
      }
      allocator.release(held[victim]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(victim));
    }
    ASSERT_EQ(allocator.free_units(), kUnits - static_cast<int>(used.size()));
  }
  for (const auto& runs : held) allocator.release(runs);
  // All whole again.
  EXPECT_EQ(allocator.allocate(16 * 20).size(), 1U);
}

}  // namespace
}  // namespace penstock
