#include "memory/taken_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"

namespace penstock {
namespace {

struct Taken {
  Stretch stretch;
  std::int64_t begin = 0, end = 0;
};

bool is_free(const std::vector<Taken>& all, const std::vector<Stretch>& stretches, std::int64_t begin,
             std::int64_t end) {
  return std::none_of(all.begin(), all.end(), [&](const Taken& taken) {
    return taken.begin < end && begin < taken.end &&
           std::any_of(stretches.begin(), stretches.end(), [&](const Stretch& stretch) {
             return stretch.first <= taken.stretch.last && taken.stretch.first <= stretch.last;
           });
  });
}

TEST(TakenSpace, FindsTheLowestGap) {
  // Fewer instructions than leaves, and several of them a leaf.
  for (const std::int64_t instructions : {1, 7, 300, 9000, 20001}) {
    const CounterRandom random(11, RandomPurpose::synthetic, 0, static_cast<std::uint64_t>(instructions));
    std::uint64_t drawn = 0;
    const auto below = [&](std::int64_t limit) {
      return static_cast<std::int64_t>(random.bits(drawn++) % static_cast<std::uint64_t>(limit));
    };
    const auto stretch = [&] {
      const std::int64_t first = below(instructions);
      const std::int64_t longest = below(3) == 0 ? instructions : 40;
      return Stretch{first, std::min(instructions - 1, first + below(longest))};
    };
    TakenSpace space(instructions);
    std::vector<Taken> all;
    for (int i = 0; i < 300; ++i) {
      std::vector<Stretch> stretches{stretch()};
      if (below(4) == 0) stretches.push_back(stretch());
      const std::int64_t alignment = below(2) == 0 ? 1 : 8;
      const std::int64_t bytes = 1 + below(30), floor = below(3) == 0 ? 5 : 0;
      const std::int64_t found = space.lowest_gap(stretches, bytes, alignment, floor);
      std::int64_t lowest = round_up(floor, alignment);
      while (!is_free(all, stretches, lowest, lowest + bytes)) lowest += alignment;
      ASSERT_EQ(found, lowest) << "of " << instructions << " instructions, after " << i;
      for (const Stretch& each : stretches) {
        all.push_back({each, found, found + bytes});
        space.add(each, found, found + bytes);
      }
    }
  }
}

}  // namespace
}  // namespace penstock
