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
    for (std::int64_t at = 0; at < placement.memory_bytes(); at += kGrain) pages_[at] = at / kGrain;
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

  bool back(std::int64_t offset, std::int64_t size_bytes) const {
    for (std::int64_t at = 0; at < size_bytes; at += kGrain) {
      if (!pages_.contains(offset + at)) return false;
    }
    return true;
  }

  /// A number for each page of the range.
  std::vector<std::int64_t> in(std::int64_t offset, std::int64_t size_bytes) const {
    std::vector<std::int64_t> numbers;
    for (std::int64_t at = 0; at < size_bytes; at += kGrain) numbers.push_back(pages_.at(offset + at));
    return numbers;
  }

 private:
  std::map<std::int64_t, std::int64_t> pages_;
};

TEST(PagePlacement, WhereThereIsMemoryNothingMoves) {
  PagePlacement placement(kGrain, 4 * kGrain, 8 * kGrain);
  EXPECT_TRUE(placement.acquire(0, 4 * kGrain).empty());  // where it is at first
  placement.release(0);
  EXPECT_EQ(placement.acquire(4 * kGrain, 4 * kGrain).size(), 1U);
  placement.release(4 * kGrain);
  EXPECT_TRUE(placement.acquire(5 * kGrain, 2 * kGrain).empty());  // whoever comes next
}

TEST(PagePlacement, OnlyWhatAnotherTookMovesBack) {
  PagePlacement placement(kGrain, 4 * kGrain, 8 * kGrain);
  const Moves taken = placement.acquire(5 * kGrain, kGrain);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].size_bytes, kGrain);
  placement.release(5 * kGrain);
  const Moves back = placement.acquire(0, 4 * kGrain);
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back[0], (PagePlacement::Move{taken[0].to, taken[0].from, kGrain}));
}

TEST(PagePlacement, MisuseIsAnInternalError) {
  EXPECT_THROW(PagePlacement(kGrain, 4 * kGrain, 3 * kGrain), InternalError);
  EXPECT_THROW(PagePlacement(kGrain, 100, 3 * kGrain), InternalError);
  PagePlacement placement(kGrain, 3 * kGrain, 8 * kGrain);
  EXPECT_THROW(placement.release(0), InternalError);
  placement.acquire(kGrain, 2 * kGrain);
  EXPECT_THROW(placement.acquire(kGrain, 2 * kGrain), InternalError);  // held
  EXPECT_THROW(placement.acquire(0, 2 * kGrain), InternalError);       // overlaps
  EXPECT_THROW(placement.acquire(2 * kGrain, kGrain), InternalError);
  EXPECT_THROW(placement.acquire(4 * kGrain, 2 * kGrain), InternalError);  // too much
  EXPECT_THROW(placement.acquire(8 * kGrain, kGrain), InternalError);      // no such addresses
  EXPECT_THROW(placement.acquire(-kGrain, kGrain), InternalError);
  EXPECT_THROW(placement.acquire(4 * kGrain + 64, kGrain), InternalError);
  EXPECT_THROW(placement.release(2 * kGrain), InternalError);  // in the midst of it
  EXPECT_FALSE(placement.fits(0, 2 * kGrain));
  EXPECT_FALSE(placement.fits(4 * kGrain, 2 * kGrain));
  EXPECT_FALSE(placement.fits(8 * kGrain, kGrain));
  EXPECT_TRUE(placement.fits(4 * kGrain, kGrain));
  EXPECT_EQ(placement.acquire(4 * kGrain, kGrain).size(), 1U);
}

TEST(PagePlacement, RandomUseLosesNoPageAndDisturbsNobody) {
  const CounterRandom random(3, RandomPurpose::synthetic, 0, 1);
  constexpr std::int64_t kUnits = 1200, kAddresses = 2000;
  PagePlacement placement(kGrain, kUnits * kGrain, kAddresses * kGrain);
  Pages pages(placement);
  struct Range {
    std::int64_t size_bytes = 0;
    std::vector<std::int64_t> pages;
  };
  std::map<std::int64_t, Range> held;
  int acquired = 0;
  for (std::uint64_t i = 0; i < 6000; ++i) {
    const std::int64_t size = kGrain * (1 + random.bits(3 * i) % (i % 7 == 0 ? 600 : 40));
    const std::int64_t offset = kGrain * static_cast<std::int64_t>(random.bits(3 * i + 1) % kAddresses);
    if (placement.fits(offset, size)) {
      pages.make(placement.acquire(offset, size));
      ASSERT_TRUE(pages.back(offset, size)) << i;
      held[offset] = {size, pages.in(offset, size)};
      ++acquired;
    } else if (!held.empty()) {
      const auto victim =
          std::next(held.begin(), static_cast<std::ptrdiff_t>(random.bits(3 * i + 2) % held.size()));
      placement.release(victim->first);
      held.erase(victim);
    }
    for (const auto& [at, range] : held) {
      ASSERT_EQ(pages.in(at, range.size_bytes), range.pages) << i << ": what is held stays where it is";
    }
  }
  EXPECT_GT(acquired, 1000);
}

}  // namespace
}  // namespace penstock
