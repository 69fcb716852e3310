#include "memory/page_placement.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/random.h"

namespace penstock {
namespace {

constexpr std::int64_t kGrain = 4 * kKiB;

using Moves = PagePlacement::Moves;

/// What memory would do: pages by offset, each with a number of its own.
class Pages {
 public:
  explicit Pages(const PagePlacement& placement) {
    for (std::int64_t at = 0; at < placement.unit_bytes(); at += kGrain)
      pages_[placement.slots_end() + at] = at / kGrain;
  }

  void make(const Moves& moves) {
    for (const PagePlacement::Move& move : moves) {
      ASSERT_GT(move.size_bytes, 0);
      for (std::int64_t at = 0; at < move.size_bytes; at += kGrain) {
        const auto page = pages_.find(move.from + at);
        ASSERT_TRUE(page != pages_.end()) << "nothing there to move";
        ASSERT_FALSE(pages_.contains(move.to + at)) << "a page would be lost";
        const std::int64_t number = page->second;
        pages_.erase(page);
        pages_[move.to + at] = number;
      }
    }
  }

  bool backs(const PagePlacement& placement, int slot) const {
    for (std::int64_t at = 0; at < placement.footprint_bytes(slot); at += kGrain) {
      if (!pages_.contains(placement.offset(slot) + at)) return false;
    }
    return true;
  }

 private:
  std::map<std::int64_t, std::int64_t> pages_;
};

PagePlacement placement_of(const std::vector<std::int64_t>& slots, std::int64_t units) {
  return {slots, VirtualPoolRule(units * kGrain), units * kGrain};
}

TEST(PagePlacement, WhatIsAcquiredAgainIsStillThere) {
  PagePlacement placement = placement_of({4 * kGrain, 2 * kGrain}, 4);
  EXPECT_EQ(placement.acquire(0).size(), 1U);
  placement.release(0);
  EXPECT_TRUE(placement.acquire(0).empty());
}

TEST(PagePlacement, OnlyWhatAnotherTookMovesBack) {
  PagePlacement placement = placement_of({4 * kGrain, kGrain}, 4);
  placement.acquire(0);
  placement.release(0);
  const Moves taken = placement.acquire(1);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].size_bytes, kGrain);
  EXPECT_LT(taken[0].from, placement.slots_end());  // straight from the other slot
  placement.release(1);
  const Moves back = placement.acquire(0);
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back[0], (PagePlacement::Move{taken[0].to, taken[0].from, kGrain}));
}

TEST(PagePlacement, MisuseIsAnInternalError) {
  PagePlacement placement = placement_of({2 * kGrain, 2 * kGrain, kGrain}, 3);
  EXPECT_THROW(placement.release(0), InternalError);
  placement.acquire(0);
  EXPECT_THROW(placement.acquire(0), InternalError);
  EXPECT_FALSE(placement.fits(1));
  EXPECT_TRUE(placement.fits(2));
  EXPECT_THROW(placement.acquire(1), InternalError);
  EXPECT_THROW(placement.send_home(0), InternalError);
  EXPECT_THROW(placement.hand_over(0, 2), InternalError);
}

TEST(PagePlacement, RandomUseLosesNoPage) {
  const CounterRandom random(3, RandomPurpose::synthetic, 0, 1);
  constexpr int kSlots = 60, kUnits = 1200;
  std::vector<std::int64_t> slots;
  for (std::uint64_t i = 0; i < kSlots; ++i)
    slots.push_back(kGrain * (1 + static_cast<std::int64_t>(random.bits(i) % (i % 7 == 0 ? 600 : 40))));
  PagePlacement placement = placement_of(slots, kUnits);
  Pages pages(placement);
  int handed_over = 0, sent_home = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const auto slot = static_cast<int>(random.bits(1000 + 2 * i) % kSlots);
    const auto other = static_cast<int>(random.bits(1001 + 2 * i) % kSlots);
    if (!placement.held(slot)) {
      if (i % 5 == 0) {
        pages.make(placement.send_home(slot));
        ++sent_home;
      } else if (placement.fits(slot)) {
        pages.make(placement.acquire(slot));
      }
    } else if (!placement.held(other) &&
               placement.footprint_bytes(slot) == placement.footprint_bytes(other)) {
      pages.make(placement.hand_over(slot, other));
      ++handed_over;
    } else {
      placement.release(slot);
    }
    for (int s = 0; s < kSlots; ++s) {
      if (placement.held(s)) {
        ASSERT_TRUE(pages.backs(placement, s)) << i;
      }
    }
  }
  EXPECT_GT(handed_over, 10);
  EXPECT_GT(sent_home, 100);
}

}  // namespace
}  // namespace penstock
