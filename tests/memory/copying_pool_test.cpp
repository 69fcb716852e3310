#include <gtest/gtest.h>

#include <cstring>
#include <system_error>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "base/threads.h"
#include "memory/process.h"
#include "memory/virtual_pool.h"

namespace penstock {
namespace {

/// A kernel that does not move pages.
class WithoutMoves {
 public:
  WithoutMoves() { VirtualPool::set_pages_can_move(false); }
  ~WithoutMoves() { VirtualPool::set_pages_can_move(could_); }

 private:
  const bool could_ = VirtualPool::pages_can_move();
};

TEST(VirtualPool, WithoutMovesOfPagesItCopies) {
  const WithoutMoves without;
  const LongVector<std::int64_t> sizes{3 * kMiB, 5 * kMiB, 3 * kMiB, 9 * kMiB, 70 * kKiB, 5 * kMiB, 100};
  const std::int64_t capacity = 18 * kMiB;
  VirtualPool pool(sizes, capacity, true);
  const CounterRandom random(1, RandomPurpose::synthetic, 0, 0);
  LongVector<int> value(sizes.size(), -1);
  const auto bytes = [&](std::size_t slot) { return static_cast<std::size_t>(sizes[slot]); };
  LongVector<unsigned char> expected(bytes(5), 1);
  const std::int64_t before = process_memory().resident_bytes;
  for (int round = 0; round < 200; ++round) {
    const std::size_t slot = random.bits(static_cast<std::uint64_t>(round)) % sizes.size();
    const int id = static_cast<int>(slot);
    if (pool.held(id)) {
      const auto* data = static_cast<const unsigned char*>(pool.address(id));
      EXPECT_EQ(data[0], value[slot]);
      EXPECT_EQ(data[bytes(slot) - 1], value[slot]);
      if (slot == 1 && !pool.held(5)) {
        pool.hand_over(1, 5);
        value[5] = value[1];
        std::memset(expected.data(), value[5], expected.size());
        EXPECT_EQ(std::memcmp(pool.address(5), expected.data(), expected.size()), 0);
      } else {
        pool.release(id);
      }
    } else if (pool.fits(id)) {
      value[slot] = round % 250;
      std::memset(pool.acquire(id), value[slot], bytes(slot));
    }
  }
  EXPECT_GT(pool.moves(), 30);
#ifndef __SANITIZE_THREAD__  // its shadow memory is resident too
  EXPECT_LE(process_memory().resident_bytes - before, 2 * kMiB) << "memory is neither lost nor there twice";
#else
  EXPECT_GT(before, 0);
#endif
}

TEST(AddressRange, IsPopulatedWithoutHelpersToo) {
  set_thread_maker([](std::function<void()>) -> std::thread {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  });
  const std::int64_t before = process_memory().resident_bytes;
  AddressRange range(32 * kMiB, AddressRange::Access::read_write);
  range.populate();
  set_thread_maker(nullptr);
  EXPECT_GE(process_memory().resident_bytes - before, 31 * kMiB);
}

}  // namespace
}  // namespace penstock
