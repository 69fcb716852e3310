#include "plan/memory_curve.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/random_step.h"

namespace penstock::plan {
namespace {

TEST(MemoryCurve, AgreesWithAPlainArray) {
  Dice dice(3);
  for (const std::size_t size : {1U, 2U, 3U, 8U, 37U}) {
    MemoryCurve curve(size);
    LongVector<std::int64_t> plain(size, 0);
    const auto last_position = static_cast<std::int64_t>(size) - 1;
    for (int round = 0; round < 500; ++round) {
      const std::int64_t first = dice.between(0, last_position), last = dice.between(first, last_position);
      const std::int64_t bytes = dice.between(-50, 100);
      curve.add(first, last, bytes);
      for (std::int64_t p = first; p <= last; ++p) plain[static_cast<std::size_t>(p)] += bytes;
      const std::int64_t from = dice.between(0, last_position), to = dice.between(from, last_position);
      EXPECT_EQ(curve.max(from, to), *std::max_element(plain.begin() + from, plain.begin() + to + 1));
    }
    const LongVector<std::int64_t> bytes(size - static_cast<std::size_t>(last_position / 2), 7);
    curve.add_all(bytes, last_position / 2);
    for (std::int64_t p = last_position / 2; p <= last_position; ++p) plain[static_cast<std::size_t>(p)] += 7;
    for (std::int64_t p = 0; p <= last_position; ++p) {
      EXPECT_EQ(curve.at(p), plain[static_cast<std::size_t>(p)]);
    }
    curve.add(1, 0, 1000);
    EXPECT_EQ(curve.max(0, last_position), *std::max_element(plain.begin(), plain.end()));
  }
}

}  // namespace
}  // namespace penstock::plan
