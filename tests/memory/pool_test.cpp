#include "memory/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/random.h"
#include "memory/pack.h"
#include "memory/packed_pool.h"
#include "memory/process.h"
#include "memory/virtual_pool.h"

namespace penstock {
namespace {

#ifdef __SANITIZE_THREAD__
constexpr bool kThreadSanitizer = true;  // its shadow memory is resident too, and it is slow
#else
constexpr bool kThreadSanitizer = false;
#endif

/// Writes a pattern of the slot and this stay over the whole slot, its ends included.
void fill(void* data, std::int64_t size_bytes, std::uint64_t stamp) {
  auto* bytes = static_cast<unsigned char*>(data);
  for (std::int64_t i = 0; i < size_bytes; i += 509)
    bytes[i] = static_cast<unsigned char>(stamp * 31 + i / 509);
  if (size_bytes > 0) bytes[size_bytes - 1] = static_cast<unsigned char>(stamp);
}

bool intact(const void* data, std::int64_t size_bytes, std::uint64_t stamp) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  if (size_bytes > 0 && bytes[size_bytes - 1] != static_cast<unsigned char>(stamp)) return false;
  for (std::int64_t i = 0; i + 1 < size_bytes; i += 509) {
    if (bytes[i] != static_cast<unsigned char>(stamp * 31 + i / 509)) return false;
  }
  return true;
}

int mapping_count() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

TEST(VirtualPoolRule, GrainGrowsWithCapacityAndBoundsTheMappings) {
  EXPECT_EQ(VirtualPoolRule(kMiB).grain_bytes(), 4 * kKiB);
  EXPECT_EQ(VirtualPoolRule(64 * kMiB).grain_bytes(), 4 * kKiB);
  EXPECT_EQ(VirtualPoolRule(kGiB).grain_bytes(), 64 * kKiB);
  EXPECT_EQ(VirtualPoolRule(20 * kGiB).grain_bytes(), 2 * kMiB);
  for (const std::int64_t capacity : {kMiB, 100 * kMiB, kGiB, 20 * kGiB, 200 * kGiB}) {
    EXPECT_LE(3 * capacity / VirtualPoolRule(capacity).grain_bytes(), 50'000);
  }
}

TEST(VirtualPoolRule, CountsSmallSlotsOnceAndOthersInGrains) {
  const VirtualPoolRule rule(kGiB);
  const LongVector<std::int64_t> slots{100, 16 * kKiB, 16 * kKiB + 1, 2 * kMiB + 1, 0};
  EXPECT_EQ(rule.fixed_bytes(slots), round_up(128 + 16 * kKiB + 64, 4096));
  EXPECT_EQ(rule.footprint_bytes(100), 0);
  EXPECT_EQ(rule.footprint_bytes(16 * kKiB + 1), 64 * kKiB);
  EXPECT_EQ(rule.footprint_bytes(2 * kMiB + 1), 2 * kMiB + 64 * kKiB);
}

TEST(VirtualPool, RefusesWhatCannotBe) {
  const LongVector<std::int64_t> many(1000, 1024);
  EXPECT_THROW(VirtualPool(many, 64 * kKiB), UserError);
  try {
    const VirtualPool pool({kMiB}, machine_total_bytes() * 4);
    FAIL() << "more than the machine has";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("smaller budget"));
  }
}

TEST(VirtualPool, MisuseIsAnInternalError) {
  VirtualPool pool({kMiB, 2 * kMiB, 100}, 2 * kMiB + 4 * kKiB);
  EXPECT_THROW(pool.address(0), InternalError);
  EXPECT_THROW(pool.release(0), InternalError);
  pool.acquire(0);
  EXPECT_THROW(pool.acquire(0), InternalError);
  EXPECT_THROW(pool.acquire(1), InternalError);
  EXPECT_THROW(pool.acquire(3), InternalError);
  EXPECT_THROW(pool.acquire(-1), InternalError);
  pool.release(0);
  EXPECT_NE(pool.acquire(1), nullptr);
  EXPECT_TRUE(pool.swappable(1));
  EXPECT_FALSE(pool.swappable(2));
}

TEST(VirtualPool, CountsRounding) {
  VirtualPool pool({kMiB + 1, 100}, 4 * kMiB);
  EXPECT_EQ(pool.mapped_bytes(), 4 * kKiB);
  pool.acquire(0);
  EXPECT_EQ(pool.mapped_bytes(), kMiB + 8 * kKiB);
  EXPECT_EQ(pool.asked_bytes(), kMiB + 1);
  EXPECT_EQ(pool.peak_lost_bytes(), 8 * kKiB - 1);
  pool.release(0);
  EXPECT_EQ(pool.mapped_bytes(), 4 * kKiB);
  EXPECT_EQ(pool.peak_bytes(), kMiB + 8 * kKiB);
}

TEST(VirtualPool, ContentsMoveWithTheMemoryWhenPoisonIsOff) {
  // The same physical memory serves both slots: nothing is zeroed or copied on the way.
  VirtualPool pool({2 * kMiB, 2 * kMiB}, 2 * kMiB, false);
  fill(pool.acquire(0), 2 * kMiB, 5);
  pool.release(0);
  EXPECT_TRUE(intact(pool.acquire(1), 2 * kMiB, 5));
  pool.release(1);
}

TEST(VirtualPool, HandsMemoryOverWithItsContents) {
  for (const bool poison : {false, true}) {
    VirtualPool pool({2 * kMiB + 5, 2 * kMiB + 9, kMiB, 100}, 5 * kMiB, poison);
    pool.acquire(1);
    pool.release(1);  // may have idle memory of its own
    fill(pool.acquire(0), 2 * kMiB + 5, 5);
    const std::int64_t mapped = pool.mapped_bytes(), peak = pool.peak_bytes();
    pool.hand_over(0, 1);
    EXPECT_FALSE(pool.held(0));
    EXPECT_TRUE(intact(pool.address(1), 2 * kMiB + 5, 5));
    EXPECT_EQ(pool.mapped_bytes(), mapped);
    EXPECT_EQ(pool.peak_bytes(), peak);
    EXPECT_EQ(pool.asked_bytes(), 2 * kMiB + 9);
    fill(pool.acquire(0), 2 * kMiB + 5, 6);
    EXPECT_TRUE(intact(pool.address(1), 2 * kMiB + 5, 5));
    EXPECT_THROW(pool.hand_over(0, 1), InternalError);
    pool.release(1);
    EXPECT_THROW(pool.hand_over(1, 0), InternalError);
    EXPECT_THROW(pool.hand_over(0, 2), InternalError);
    EXPECT_THROW(pool.hand_over(0, 3), InternalError);
  }
}

TEST(VirtualPool, MovesOnlyWhatAnotherSlotNeeds) {
  VirtualPool pool({kMiB, kMiB, kMiB, 2 * kMiB}, 2 * kMiB, false);
  pool.acquire(0);
  pool.release(0);
  fill(pool.acquire(0), kMiB, 5);  // still has its memory
  EXPECT_EQ(pool.moves(), 0);
  pool.acquire(2);  // takes what nobody has
  EXPECT_EQ(pool.moves(), 1);
  pool.release(0);
  pool.acquire(1);  // takes it over
  EXPECT_EQ(pool.moves(), 2);
  EXPECT_FALSE(pool.fits(0));
  pool.release(1);
  EXPECT_TRUE(pool.fits(0));
  EXPECT_FALSE(pool.fits(3));
  EXPECT_THROW(pool.acquire(3), InternalError);
  pool.release(2);
  EXPECT_TRUE(pool.fits(3));
  fill(pool.acquire(3), 2 * kMiB, 6);
  EXPECT_EQ(pool.mapped_bytes(), 2 * kMiB);
}

TEST(VirtualPool, PoisonsWhatIsReleased) {
  VirtualPool pool({2 * kMiB, 2 * kMiB, 64}, 2 * kMiB + 4 * kKiB, true);
  fill(pool.acquire(0), 2 * kMiB, 5);
  pool.release(0);
  const auto* bytes = static_cast<const unsigned char*>(pool.acquire(1));
  EXPECT_EQ(std::count(bytes, bytes + 2 * kMiB, kPoisonByte), 2 * kMiB);
  pool.release(1);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST(VirtualPoolDeathTest, ReleasedMemoryIsInaccessible) {
  VirtualPool pool({2 * kMiB + 100}, 4 * kMiB, true);
  auto* bytes = static_cast<volatile char*>(pool.acquire(0));
  bytes[0] = 1;
  pool.release(0);
  EXPECT_DEATH(bytes[0] = 2, "");
  EXPECT_DEATH(bytes[2 * kMiB] = 2, "");
}
#endif

/// Random stays of random slots against a model: contents, addresses, counts, physical memory.
void churn(LongVector<std::int64_t> sizes, std::int64_t capacity, std::uint64_t seed, int rounds) {
  const VirtualPoolRule rule(capacity);
  const std::int64_t before = process_memory().resident_bytes;
  const int mappings = mapping_count();
  VirtualPool pool(sizes, capacity, seed % 2 == 0);
  const std::int64_t after = process_memory().resident_bytes;
  EXPECT_GE(after - before, capacity * 9 / 10) << "memory is touched at start";
  const CounterRandom random(seed, RandomPurpose::synthetic, 0, 2);
  const auto slots = static_cast<std::uint32_t>(sizes.size());
  std::map<int, std::uint64_t> held;
  LongVector<void*> address(sizes.size(), nullptr);
  std::int64_t mapped = rule.fixed_bytes(sizes);
  std::int64_t peak = mapped;
  if (kThreadSanitizer) rounds /= 5;
  for (int round = 0; round < rounds; ++round) {
    const auto index = static_cast<std::uint64_t>(round);
    const auto slot = static_cast<int>(random.bits(index) % slots);
    const std::int64_t size = sizes[static_cast<std::size_t>(slot)];
    if (held.contains(slot)) {
      ASSERT_TRUE(intact(pool.address(slot), size, held[slot]));
      pool.release(slot);
      held.erase(slot);
      mapped -= rule.footprint_bytes(size);
    } else if (mapped + rule.footprint_bytes(size) <= capacity) {
      void* data = pool.acquire(slot);
      void*& first = address[static_cast<std::size_t>(slot)];
      if (first == nullptr) first = data;
      ASSERT_EQ(data, first) << "a slot keeps its address for life";
      ASSERT_TRUE(!pool.swappable(slot) || reinterpret_cast<std::uintptr_t>(data) % 4096 == 0);
      fill(data, size, index);
      held[slot] = index;
      mapped += rule.footprint_bytes(size);
      peak = std::max(peak, mapped);
    }
    ASSERT_EQ(pool.mapped_bytes(), mapped);
  }
  for (const auto& [slot, stamp] : held) {
    ASSERT_TRUE(intact(pool.address(slot), sizes[static_cast<std::size_t>(slot)], stamp));
  }
  EXPECT_EQ(pool.peak_bytes(), peak);
  EXPECT_GT(peak, capacity * 8 / 10) << "the test must fill the pool";
  if (!kThreadSanitizer) {
    EXPECT_LE(process_memory().resident_bytes - after, 4 * kMiB)
        << "no more physical memory than the capacity";
  }
  EXPECT_LE(mapping_count() - mappings, 3 * capacity / rule.grain_bytes() + 50);
}

LongVector<std::int64_t> random_sizes(std::uint64_t seed, std::uint32_t count, std::uint32_t largest) {
  const CounterRandom random(seed, RandomPurpose::synthetic, 1, 3);
  LongVector<std::int64_t> sizes;
  for (std::uint32_t i = 0; i < count; ++i) {
    // Sizes spread evenly over the orders of magnitude, and some that are whole huge pages.
    const auto bound = std::max<std::uint32_t>(1, largest >> (random.bits(2 * i) % 12));
    auto size = static_cast<std::int64_t>(random.bits(2 * i + 1) % bound);
    if (i % 7 == 0) size = round_up(size, 2 * kMiB);
    sizes.push_back(size);
  }
  return sizes;
}

TEST(VirtualPool, SurvivesChurnInSmallGrains) {
  churn(random_sizes(1, 80, 6 << 20), 24 * kMiB, 1, 3000);
}

TEST(VirtualPool, SurvivesChurnWithPoison) {
  churn(random_sizes(2, 60, 9 << 20), 40 * kMiB + 12 * kKiB, 2, 1500);
}

TEST(VirtualPool, SurvivesChurnInLargerGrains) {
  churn(random_sizes(3, 100, 40 << 20), 200 * kMiB, 3, 1500);
}

/// Slots share addresses: memory is where the user says, and what is held keeps apart.
TEST(VirtualPool, SlotsGoWhereTheyAreTold) {
  for (const bool poison : {false, true}) {
    VirtualPool pool({2 * kMiB, kMiB, 100, 200, kMiB + 1}, VirtualPoolRule(kMiB),
                     {4 * kKiB, 3 * kMiB, 5 * kMiB}, poison);
    EXPECT_EQ(pool.capacity_bytes(), 3 * kMiB + 4 * kKiB);
    auto* const base = static_cast<std::byte*>(pool.acquire(0, 0));
    fill(base, 2 * kMiB, 1);
    EXPECT_EQ(pool.moves(), 0);
    EXPECT_EQ(pool.acquire(1, 4 * kMiB), base + 4 * kMiB);
    EXPECT_EQ(pool.moves(), 1);
    fill(pool.address(1), kMiB, 2);
    EXPECT_TRUE(intact(base, 2 * kMiB, 1));
    EXPECT_FALSE(pool.fits(4, 2 * kMiB));  // no memory is left
    pool.release(0);
    EXPECT_FALSE(pool.fits(0, 3 * kMiB));  // overlaps
    EXPECT_THROW(pool.acquire(0, 3 * kMiB), InternalError);
    EXPECT_THROW(pool.acquire(0, 100), InternalError);
    EXPECT_THROW(pool.acquire(0, kAnywhere), InternalError);
    EXPECT_FALSE(pool.fits(0, kAnywhere));
    EXPECT_EQ(pool.acquire(4, 4 * kKiB), base + 4 * kKiB);
    fill(pool.address(4), kMiB + 1, 3);
    EXPECT_TRUE(intact(pool.address(1), kMiB, 2));
    // Small ones have a space of their own.
    auto* const small = static_cast<std::byte*>(pool.acquire(2, 128));
    EXPECT_THROW(pool.acquire(3, 192), InternalError);
    EXPECT_THROW(pool.acquire(3, 4 * kKiB), InternalError);
    EXPECT_EQ(pool.acquire(3, 256), small + 128);
    EXPECT_THROW(pool.hand_over(2, 3), InternalError);
    pool.release(2);
    EXPECT_TRUE(pool.fits(2, 0));
  }
}

TEST(VirtualPool, WorstFragmentationStillServes) {
  // All single grains, every second one given back, then one slot that takes all that is free.
  constexpr int kGrains = 1024;
  LongVector<std::int64_t> sizes(kGrains, 4 * kKiB);
  sizes.push_back(kGrains / 2 * 4 * kKiB);
  VirtualPool pool(sizes, kGrains * 4 * kKiB, false);
  for (int i = 0; i < kGrains; ++i) fill(pool.acquire(i), 4 * kKiB, static_cast<std::uint64_t>(i));
  for (int i = 0; i < kGrains; i += 2) pool.release(i);
  fill(pool.acquire(kGrains), sizes.back(), 99);
  for (int i = 1; i < kGrains; i += 2) {
    ASSERT_TRUE(intact(pool.address(i), 4 * kKiB, static_cast<std::uint64_t>(i)));
  }
  EXPECT_TRUE(intact(pool.address(kGrains), sizes.back(), 99));
  EXPECT_THROW(pool.acquire(0), InternalError);
}

TEST(PackedPool, KeepsContentsRoundAndRound) {
  const LongVector<PackInterval> stays{{0, 0, 3, 10000}, {1, 4, 6, 9000}, {0, 7, 9, 10000}, {2, 2, 5, 100}};
  const Packing packing = pack(stays, 3);
  PackedPool pool({10000, 9000, 100}, packing.arena_bytes, true);
  EXPECT_EQ(pool.capacity_bytes(), packing.arena_bytes);
  for (int step = 0; step < 3; ++step) {
    for (std::int64_t now = 0; now < 10; ++now) {
      for (const PackInterval& stay : stays) {
        if (stay.first == now)
          fill(pool.acquire(stay.slot, packing.offsets[static_cast<std::size_t>(stay.slot)]), stay.size_bytes,
               static_cast<std::uint64_t>(stay.first));
      }
      for (const PackInterval& stay : stays) {
        if (stay.last != now) continue;
        ASSERT_TRUE(intact(pool.address(stay.slot), stay.size_bytes, static_cast<std::uint64_t>(stay.first)));
        pool.release(stay.slot);
      }
    }
  }
  EXPECT_LE(pool.peak_bytes(), packing.arena_bytes);
  EXPECT_EQ(pool.mapped_bytes(), 0);
  EXPECT_TRUE(pool.swappable(0));
  EXPECT_FALSE(pool.swappable(2));
}

TEST(PackedPool, RefusesOverlapAndWrongPlaces) {
  PackedPool pool({4096, 4096}, 8192);
  pool.acquire(0, 0);
  EXPECT_THROW(pool.acquire(1, 0), InternalError);
  EXPECT_THROW(pool.acquire(0, 4096), InternalError);
  EXPECT_THROW(pool.acquire(1, 8192), InternalError);
  EXPECT_THROW(pool.acquire(1, 64), InternalError);
  EXPECT_THROW(pool.acquire(1, kAnywhere), InternalError);
  pool.release(0);
  EXPECT_NO_THROW(pool.acquire(1, 0));
}

TEST(PackedPool, ASlotMayBeElsewhereAtEachStay) {
  PackedPool pool({4096, 4096}, 12288);
  auto* const base = static_cast<std::byte*>(pool.acquire(0, 0));
  pool.release(0);
  EXPECT_EQ(pool.acquire(0, 8192), base + 8192);
  EXPECT_EQ(pool.acquire(1, 0), base);
  EXPECT_EQ(pool.address(0), base + 8192);
  pool.release(0);
  EXPECT_EQ(pool.acquire(0, 4096), base + 4096);
}

TEST(PackedPool, HandsMemoryOverWhereItIs) {
  PackedPool pool({4096, 4096, 8192}, 12288);
  auto* const memory = static_cast<std::byte*>(pool.acquire(0, 4096));
  std::memset(memory, 7, 4096);
  EXPECT_THROW(pool.hand_over(0, 2), InternalError);
  pool.hand_over(0, 1);
  EXPECT_FALSE(pool.held(0));
  EXPECT_EQ(pool.address(1), memory);
  EXPECT_EQ(memory[4095], std::byte{7});
  EXPECT_THROW(pool.hand_over(0, 1), InternalError);
  EXPECT_FALSE(pool.fits(0, 4096));
  pool.release(1);
  EXPECT_TRUE(pool.fits(0, 4096));
  EXPECT_EQ(pool.asked_bytes(), 0);
}

TEST(PackedPool, TouchesItsArenaAtStart) {
  const std::int64_t before = process_memory().resident_bytes;
  const PackedPool pool({48 * kMiB}, 48 * kMiB);
  EXPECT_GE(process_memory().resident_bytes - before, 47 * kMiB);
}

}  // namespace
}  // namespace penstock
