#include "data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "data/files.h"
#include "data/permutation.h"

namespace penstock {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::user_error;

std::vector<std::int64_t> order(std::uint64_t seed, std::int64_t epoch, std::int64_t size) {
  const Permutation permutation(seed, epoch, size);
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < size; ++i) values.push_back(permutation(i));
  return values;
}

TEST(Permutation, HoldsEachIndexOnce) {
  for (const std::int64_t size : {1, 2, 3, 4, 5, 10, 63, 64, 65, 1000, 4097}) {
    auto values = order(3, 1, size);
    std::sort(values.begin(), values.end());
    std::vector<std::int64_t> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(values, all) << size;
  }
}

TEST(Permutation, DependsOnSeedAndEpochAlone) {
  EXPECT_EQ(order(3, 1, 100), order(3, 1, 100));
  EXPECT_NE(order(3, 1, 100), order(4, 1, 100));
  EXPECT_NE(order(3, 1, 100), order(3, 2, 100));
}

TEST(Permutation, SpreadsEachPlaceOverAllIndices) {
  // Over many epochs, the first place holds each of 10 indices about equally often.
  std::vector<int> counts(10);
  constexpr int kEpochs = 5000;
  for (int epoch = 0; epoch < kEpochs; ++epoch)
    ++counts[static_cast<std::size_t>(Permutation(1, epoch, 10)(0))];
  for (const int count : counts) EXPECT_NEAR(count, kEpochs / 10, 130);
  // And neighbours do not stay neighbours.
  const auto values = order(1, 0, 10000);
  int adjacent = 0;
  for (std::size_t i = 1; i < values.size(); ++i)
    adjacent += std::abs(values[i] - values[i - 1]) == 1 ? 1 : 0;
  EXPECT_LT(adjacent, 20);
}

SamplerOptions options(std::int64_t samples, std::int64_t batch) {
  SamplerOptions result;
  result.samples = samples;
  result.batch = batch;
  result.seed = 5;
  return result;
}

TEST(Sampler, KeepsTheOrderUnlessItShuffles) {
  SamplerOptions plain = options(10, 3);
  plain.shuffle = false;
  const Sampler sampler(plain);
  EXPECT_EQ(sampler.batches_per_epoch(), 3);
  EXPECT_THAT(sampler.batch_indices({4, 1}), ElementsAre(3, 4, 5));
  EXPECT_THAT(sampler.batch_indices({4, 2}), ElementsAre(6, 7, 8));
  EXPECT_EQ(sampler.valid_samples(2), 3);
  EXPECT_EQ(sampler.next({4, 1}), (DataPosition{4, 2}));
  EXPECT_EQ(sampler.next({4, 2}), (DataPosition{5, 0}));
}

TEST(Sampler, TakesEachSampleAtMostOnceAnEpoch) {
  const Sampler sampler(options(103, 10));
  std::vector<std::int64_t> seen;
  for (std::int64_t batch = 0; batch < 10; ++batch) {
    const auto indices = sampler.batch_indices({2, batch});
    seen.insert(seen.end(), indices.begin(), indices.end());
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_NE(sampler.batch_indices({0, 0}), sampler.batch_indices({1, 0}));
}

TEST(Sampler, FillsTheLastBatchWhereAsked) {
  SamplerOptions filled = options(5, 3);
  filled.shuffle = false;
  filled.last_batch = LastBatch::fill;
  const Sampler sampler(filled);
  EXPECT_EQ(sampler.batches_per_epoch(), 2);
  EXPECT_THAT(sampler.batch_indices({0, 1}), ElementsAre(3, 4, 4));
  EXPECT_EQ(sampler.valid_samples(0), 3);
  EXPECT_EQ(sampler.valid_samples(1), 2);
  filled.batch = 8;
  EXPECT_EQ(Sampler(filled).batches_per_epoch(), 1);
  EXPECT_EQ(Sampler(filled).valid_samples(0), 5);
}

TEST(Sampler, RanksShareTheBatchOfOne) {
  const Sampler one(options(50, 12));
  std::vector<std::int64_t> joined;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    SamplerOptions part = options(50, 4);
    part.rank = rank;
    part.ranks = 3;
    const Sampler sampler(part);
    EXPECT_EQ(sampler.batches_per_epoch(), one.batches_per_epoch());
    const auto indices = sampler.batch_indices({1, 2});
    joined.insert(joined.end(), indices.begin(), indices.end());
  }
  EXPECT_EQ(joined, one.batch_indices({1, 2}));
}

TEST(Sampler, RefusesBatchesThatDoNotFit) {
  EXPECT_THAT(user_error([] { Sampler{options(10, 0)}; }), HasSubstr("batch 0"));
  EXPECT_THAT(user_error([] { Sampler{options(10, 11)}; }), HasSubstr("batch 11 is larger than the data"));
  SamplerOptions ranks = options(10, 6);
  ranks.ranks = 2;
  EXPECT_THAT(user_error([&] { Sampler{ranks}; }), HasSubstr("batch 6 on 2 ranks is larger"));
}

}  // namespace
}  // namespace penstock
