#include "dist/communicator.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/slices.h"
#include "dist/measure.h"

// Every rank runs these tests: under mpirun together, otherwise alone.
namespace penstock::dist {
namespace {

std::unique_ptr<Communicator>& communicator() {
  static std::unique_ptr<Communicator> made;
  return made;
}

class Joined : public ::testing::Environment {
 public:
  void SetUp() override { communicator() = join(); }
  void TearDown() override { communicator().reset(); }
};
[[maybe_unused]] const auto* const kJoined = ::testing::AddGlobalTestEnvironment(new Joined);

/// What rank `rank` brings along; sums of these depend on the order of addition.
std::vector<float> values_of(int rank, std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  CounterRandom(seed, RandomPurpose::initialise, 0, static_cast<std::uint32_t>(rank))
      .fill_normal(values.data(), count, 1);
  return values;
}

std::vector<float> mean_in_rank_order(int ranks, std::int64_t count, std::uint64_t seed) {
  std::vector<float> sum = values_of(0, count, seed);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::vector<float> more = values_of(rank, count, seed);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
  }
  for (float& value : sum) value *= 1.0F / static_cast<float>(ranks);
  return sum;
}

const std::int64_t kCounts[] = {1, 15, 17, 64, 1000, 70'001, 1'500'003};

TEST(Communicator, AllReduceAddsInTheOrderOfTheRanks) {
  Communicator& ranks = *communicator();
  for (const std::int64_t count : kCounts) {
    std::vector<float> values = values_of(ranks.rank(), count, 1);
    ranks.start(0, Exchange::all_reduce, values.data(), count);
    ranks.wait(0);
    EXPECT_EQ(values, mean_in_rank_order(ranks.size(), count, 1)) << count;
  }
}

TEST(Communicator, ScatterThenGatherIsAllReduce) {
  Communicator& ranks = *communicator();
  for (const std::int64_t count : kCounts) {
    std::vector<float> values = values_of(ranks.rank(), count, 2);
    ranks.start(0, Exchange::reduce_scatter, values.data(), count);
    ranks.wait(0);
    const std::vector<float> mean = mean_in_rank_order(ranks.size(), count, 2);
    const Slice own = rank_slice(count, ranks.rank(), ranks.size());
    for (std::int64_t i = 0; i < count; ++i) {
      float& value = values[static_cast<std::size_t>(i)];
      if (i < own.begin || i >= own.end)
        value = -1;
      else
        ASSERT_EQ(value, mean[static_cast<std::size_t>(i)]) << i << " of " << count;
    }
    ranks.start(0, Exchange::all_gather, values.data(), count);
    ranks.wait(0);
    EXPECT_EQ(values, mean) << count;
  }
}

TEST(Communicator, ManyExchangesAreUnderWayAtOnce) {
  Communicator& ranks = *communicator();
  constexpr int kMany = 12;
  constexpr std::int64_t kCount = 30'000;
  const ExchangeStats before = ranks.stats();
  std::vector<std::vector<float>> values;
  for (int i = 0; i < kMany; ++i) {
    values.push_back(values_of(ranks.rank(), kCount + i, static_cast<std::uint64_t>(i)));
    ranks.start(i, Exchange::all_reduce, values.back().data(), kCount + i);
  }
  for (int i = kMany; i-- > 0;) ranks.wait(i);
  for (int i = 0; i < kMany; ++i) {
    EXPECT_EQ(values[static_cast<std::size_t>(i)],
              mean_in_rank_order(ranks.size(), kCount + i, static_cast<std::uint64_t>(i)));
  }
  const ExchangeStats after = ranks.stats();
  if (ranks.size() > 1) {
    EXPECT_GT(after.sent_bytes, before.sent_bytes);
    EXPECT_GT(after.busy_seconds, 0);
  }
}

TEST(Communicator, SmallValuesReachEverybody) {
  Communicator& ranks = *communicator();
  for (int round = 0; round < 3; ++round) {
    const auto name = [&](int rank) {
      return std::string(static_cast<std::size_t>(rank * round), 'x') + "!";
    };
    const std::vector<std::string> all = ranks.all_gather(name(ranks.rank()));
    ASSERT_EQ(all.size(), static_cast<std::size_t>(ranks.size()));
    for (int rank = 0; rank < ranks.size(); ++rank)
      EXPECT_EQ(all[static_cast<std::size_t>(rank)], name(rank));
  }
}

TEST(Communicator, BroadcastAndGatherMoveWholeArrays) {
  Communicator& ranks = *communicator();
  constexpr std::int64_t kCount = 1'200'000;
  std::vector<float> values = values_of(ranks.rank(), kCount, 3);
  ranks.broadcast(values.data(), kCount);
  EXPECT_EQ(values, values_of(0, kCount, 3));

  // Pieces of different sizes, the first empty where there are several.
  std::vector<std::int64_t> bounds{0};
  for (int rank = 0; rank < ranks.size(); ++rank) {
    bounds.push_back(rank + 1 == ranks.size() ? kCount : rank * 1000);
  }
  const auto own = static_cast<std::size_t>(ranks.rank());
  std::vector<float> whole(static_cast<std::size_t>(ranks.rank() == 0 ? kCount : 0));
  const std::vector<float> mine = values_of(ranks.rank(), kCount, 4);
  ranks.gather(mine.data() + bounds[own], bounds, whole.data());
  if (ranks.rank() != 0) return;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const std::vector<float> theirs = values_of(rank, kCount, 4);
    const auto begin = bounds[static_cast<std::size_t>(rank)],
               end = bounds[static_cast<std::size_t>(rank) + 1];
    EXPECT_TRUE(std::equal(theirs.begin() + begin, theirs.begin() + end, whole.begin() + begin)) << rank;
  }
}

TEST(Communicator, EverybodyGetsTheSameSpeed) {
  Communicator& ranks = *communicator();
  const NetworkSpeed speed = measure_network(ranks);
  EXPECT_EQ(speed.bandwidth > 0, ranks.size() > 1);
  const std::string text = std::to_string(speed.bandwidth) + std::to_string(speed.latency_seconds);
  for (const std::string& other : ranks.all_gather(text)) EXPECT_EQ(other, text);
}

}  // namespace
}  // namespace penstock::dist
