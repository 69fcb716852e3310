#include "base/paged_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>

#include "base/bytes.h"
#include "base/long_vector.h"
#include "base/nameless_file.h"

namespace penstock {
namespace {

/// Of files that are mapped, in this process.
std::int64_t file_resident_bytes() {
  std::ifstream input("/proc/self/statm");
  std::int64_t size = 0, resident = 0, shared = 0;
  input >> size >> resident >> shared;
  return shared * ::sysconf(_SC_PAGESIZE);
}

class PagedMemoryTest : public ::testing::Test {
 protected:
  PagedMemoryTest() {
    for (const char* folder : {"/var/tmp", "/tmp", "."}) {
      if (!std::filesystem::exists(folder) || is_memory_filesystem(folder)) continue;
      folder_ = folder;
      break;
    }
  }

  std::string folder_;
};

TEST_F(PagedMemoryTest, LongVectorsKeepTheirValuesAndLittleOfThemStaysResident) {
  const PagedMemory memory(folder_, kMiB);
  ASSERT_TRUE(memory.works());
  const std::int64_t before = file_resident_bytes();
  LongVector<std::uint64_t> numbers;
  for (std::uint64_t i = 0; i < 8 * kMiB; ++i) numbers.push_back(i * i);
  EXPECT_GE(paged_bytes(), 64 * kMiB);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(file_resident_bytes() - before, 8 * kMiB);
  for (std::uint64_t i = 0; i < 8 * kMiB; ++i) ASSERT_EQ(numbers[i], i * i);
  numbers = LongVector<std::uint64_t>();
  EXPECT_EQ(paged_bytes(), 0);
}

TEST_F(PagedMemoryTest, WhatIsEvictedComesBack) {
  const PagedMemory memory(folder_, kGiB);
  LongVector<int> numbers(kMiB);
  std::iota(numbers.begin(), numbers.end(), 0);
  const std::int64_t before = file_resident_bytes();
  evict_paged();
  EXPECT_LT(file_resident_bytes(), before - 3 * kMiB);
  for (int i = 0; i < static_cast<int>(numbers.size()); ++i)
    ASSERT_EQ(numbers[static_cast<std::size_t>(i)], i);
}

TEST_F(PagedMemoryTest, SmallVectorsAndThoseWithoutPagedMemoryAreOfTheHeap) {
  const LongVector<int> on_heap(kMiB, 1);
  EXPECT_EQ(paged_bytes(), 0);
  const PagedMemory memory(folder_, kMiB);
  const LongVector<int> small(1000, 1);
  EXPECT_EQ(paged_bytes(), 0);
}

TEST_F(PagedMemoryTest, BlocksMayOutliveIt) {
  LongVector<int> numbers;
  {
    const PagedMemory memory(folder_, kMiB);
    numbers.assign(kMiB, 7);
  }
  EXPECT_GE(paged_bytes(), 4 * kMiB);
  EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0}), 7 * kMiB);
  numbers = LongVector<int>();
  EXPECT_EQ(paged_bytes(), 0);
}

TEST_F(PagedMemoryTest, ABlockThatWasFreedIsUsedAgain) {
  const PagedMemory memory(folder_, kGiB);
  const void* first = LongVector<int>(kMiB, 1).data();
  const LongVector<int> second(kMiB, 2);
  EXPECT_EQ(second.data(), first);
  EXPECT_EQ(second.back(), 2);
}

TEST_F(PagedMemoryTest, DoesWithoutAFolder) {
  for (const char* folder : {"", "/nonexistent", "/proc"}) {
    const PagedMemory memory(folder, kMiB);
    EXPECT_FALSE(memory.works()) << folder;
    const LongVector<int> numbers(kMiB, 1);
    EXPECT_EQ(paged_bytes(), 0);
  }
}

TEST_F(PagedMemoryTest, ThreadsMayShareIt) {
  const PagedMemory memory(folder_, kMiB);
  const auto work = [](int seed) {
    for (int round = 0; round < 20; ++round) {
      LongVector<int> numbers(static_cast<std::size_t>(100000 + 10000 * round), seed + round);
      for (const int number : numbers) ASSERT_EQ(number, seed + round);
    }
  };
  std::thread other(work, 1000);
  work(2000);
  other.join();
  EXPECT_EQ(paged_bytes(), 0);
}

}  // namespace
}  // namespace penstock
