#include "memory/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"

namespace penstock {
namespace {

bool alive(const PackInterval& interval, std::int64_t instruction) {
  if (interval.last < interval.first) return instruction >= interval.first || instruction <= interval.last;
  return instruction >= interval.first && instruction <= interval.last;
}

/// Walks the step instruction by instruction: what lives together must not overlap. Returns the most bytes
/// alive.
std::int64_t check(const std::vector<PackInterval>& intervals, const Packing& packing,
                   std::int64_t instructions) {
  std::int64_t most = 0;
  for (std::int64_t now = 0; now < instructions; ++now) {
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      if (!alive(intervals[i], now)) continue;
      taken.emplace_back(packing.offsets[i], packing.offsets[i] + packed_bytes(intervals[i].size_bytes));
      sum += packed_bytes(intervals[i].size_bytes);
      EXPECT_LE(taken.back().second, packing.arena_bytes);
      EXPECT_EQ(packing.offsets[i] % packed_alignment(intervals[i].size_bytes), 0);
    }
    std::sort(taken.begin(), taken.end());
    for (std::size_t i = 1; i < taken.size(); ++i) EXPECT_LE(taken[i - 1].second, taken[i].first);
    most = std::max(most, sum);
  }
  return most;
}

TEST(Pack, SharesMemoryBetweenLivesThatDoNotMeet) {
  const std::vector<PackInterval> intervals{{0, 0, 3, 8192}, {1, 4, 6, 8192}, {2, 2, 5, 4096}};
  const Packing packing = pack(intervals, static_cast<int>(intervals.size()));
  EXPECT_EQ(packing.arena_bytes, 8192 + 4096);
  EXPECT_EQ(packing.offsets[0], packing.offsets[1]);
}

TEST(Pack, AStayAcrossTheEndMeetsBothEnds) {
  const std::vector<PackInterval> intervals{
      {0, 8, 1, 8192}, {1, 0, 0, 4096}, {2, 9, 9, 4096}, {3, 4, 5, 8192}};
  const Packing packing = pack(intervals, static_cast<int>(intervals.size()));
  check(intervals, packing, 10);
  EXPECT_EQ(packing.arena_bytes, 8192 + 4096);
}

TEST(Pack, WhatIsFixedStaysAndTheRestGoesAboutIt) {
  const std::vector<PackInterval> intervals{
      {0, 0, 9, 4096}, {1, 0, 9, 4096}, {2, 2, 3, 8192}, {3, 2, 5, 4096}, {4, 6, 7, 8192}};
  const std::vector<std::int64_t> fixed{4096, -1, -1};
  const Packing packing = pack(intervals, static_cast<int>(intervals.size()), fixed);
  check(intervals, packing, 10);
  EXPECT_EQ(packing.offsets[0], 4096);
  EXPECT_EQ(packing.offsets[2], 8192);  // not below, where it is too narrow now
  EXPECT_EQ(packing.offsets[4], packing.offsets[2]);
}

TEST(Pack, RandomStepsDoNotOverlapAndWasteLittle) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const CounterRandom random(seed, RandomPurpose::synthetic, 0, 1);
    std::vector<PackInterval> intervals;
    for (std::uint32_t i = 0; i < 150; ++i) {
      const auto first = static_cast<std::int64_t>(random.bits(4 * i) % 100);
      const auto length = static_cast<std::int64_t>(random.bits(4 * i + 1) % 30);
      const bool large = random.bits(4 * i + 2) % 2 == 0;
      const auto size = static_cast<std::int64_t>(random.bits(4 * i + 3) % (large ? 1000000 : 5000));
      intervals.push_back({static_cast<int>(i), first, (first + length) % 100, size});
    }
    const Packing packing = pack(intervals, static_cast<int>(intervals.size()));
    const std::int64_t most = check(intervals, packing, 100);
    EXPECT_GE(packing.arena_bytes, most);
    EXPECT_LE(packing.arena_bytes, most + most / 3) << "seed " << seed;
    EXPECT_EQ(pack(intervals, static_cast<int>(intervals.size())).offsets, packing.offsets);
  }
}

TEST(Pack, ASlotIsAtOneOffsetAtAllItsStays) {
  // Slot 0 meets slot 1 at its first stay and slot 2 at its second, which may share what slot 0 leaves.
  const std::vector<PackInterval> intervals{
      {0, 0, 2, 8192}, {1, 1, 4, 4096}, {0, 6, 8, 8192}, {2, 7, 9, 4096}};
  const Packing packing = pack(intervals, 4);
  EXPECT_EQ(packing.offsets[0], 0);
  EXPECT_EQ(packing.offsets[1], 8192);
  EXPECT_EQ(packing.offsets[2], 8192);
  EXPECT_EQ(packing.offsets[3], -1);
  EXPECT_EQ(packing.arena_bytes, 8192 + 4096);
}

}  // namespace
}  // namespace penstock
