#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "tier/faulty_tier.h"
#include "tier/make_tier.h"
#include "tier/throttled_tier.h"
#include "tier/tier_fixture.h"
#include "tier/verified_tier.h"

namespace penstock {
namespace {

const LongVector<std::int64_t> kFourSizes{50'000, 50'000, 4096, 120'000};

MadeTier faulty(VerifyMode verify, FaultyTierOptions faults, FaultyTier** seen = nullptr) {
  TierOptions options;
  options.kind = TierKind::ram;
  options.verify = verify;
  options.wrap = [&](std::unique_ptr<Tier> inner) {
    auto tier = std::make_unique<FaultyTier>(std::move(inner), faults);
    if (seen != nullptr) *seen = tier.get();
    return tier;
  };
  return make_tier(options, kFourSizes);
}

TEST(FaultyTier, RandomOrderAndDelaysChangeNothing) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    FaultyTierOptions faults;
    faults.random_order = true;
    faults.max_delay_seconds = 0.0005;
    faults.seed = seed;
    Traffic traffic(kFourSizes);
    const MadeTier made = faulty(VerifyMode::full, faults);
    EXPECT_EQ(traffic.round_trip(*made.tier, seed), 0);
    EXPECT_EQ(traffic.round_trip(*made.tier, seed + 50), 0);
  }
}

#ifndef __SANITIZE_THREAD__  // it does on purpose what the sanitizer would report
TEST(FaultyTier, RandomOrderShowsABufferTouchedTooEarly) {
  FaultyTierOptions faults;
  faults.random_order = true;
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    faults.seed = seed;
    Traffic traffic(kFourSizes);
    const MadeTier made = faulty(VerifyMode::off, faults);
    traffic.out(0).fill(1);
    const Ticket write = made.tier->write(0, traffic.out(0).data());
    traffic.out(0).fill(2);
    const Ticket read = made.tier->read(0, traffic.in(0).data());
    made.tier->wait(write);
    made.tier->wait(read);
    wrong += traffic.in(0).holds(1) ? 0 : 1;
  }
  EXPECT_GT(wrong, 2);
}
#endif

TEST(FaultyTier, DoneComesToPassWithoutWait) {
  FaultyTierOptions faults;
  faults.random_order = true;
  Traffic traffic(kFourSizes);
  const MadeTier made = faulty(VerifyMode::off, faults);
  const Ticket ticket = made.tier->write(1, traffic.out(1).data());
  while (!made.tier->done(ticket)) std::this_thread::yield();
  made.tier->wait(ticket);
}

struct FaultCase {
  TierFault::Kind kind;
  VerifyMode verify;
  std::string text;
};

/// The fault strikes every request of two round trips in turn: an error that says so, or the right data;
/// never wrong data.
TEST(VerifiedTier, NoFaultPassesUnnoticed) {
  using Kind = TierFault::Kind;
  const LongVector<FaultCase> cases{
      {Kind::io_error, VerifyMode::off, "Input/output error"},
      {Kind::no_space, VerifyMode::off, "No space left"},
      {Kind::flipped_bit, VerifyMode::full, "damaged"},
      {Kind::stale, VerifyMode::full, "stale"},
      {Kind::stale, VerifyMode::sampled, "stale"},
      {Kind::misplaced, VerifyMode::full, "misplaced"},
      {Kind::misplaced, VerifyMode::sampled, "misplaced"},
  };
  for (const FaultCase& test : cases) {
    for (const bool lasting : {false, true}) {
      int errors = 0;
      const std::int64_t requests = 4 * static_cast<std::int64_t>(kFourSizes.size());
      for (std::int64_t at = 0; at < requests; ++at) {
        FaultyTierOptions faults;
        faults.fault = TierFault{test.kind, at, lasting};
        Traffic traffic(kFourSizes);
        FaultyTier* seen = nullptr;
        const MadeTier made = faulty(test.verify, faults, &seen);
        try {
          EXPECT_EQ(traffic.round_trip(*made.tier, 1000), 0);
          EXPECT_EQ(traffic.round_trip(*made.tier, 2000), 0);
        } catch (const RunError& error) {
          ++errors;
          EXPECT_THAT(error.what(),
                      testing::AllOf(testing::HasSubstr(test.text), testing::HasSubstr("extent")));
          EXPECT_THROW(made.tier->wait(1), RunError) << "the first error stays";
        }
        EXPECT_GT(seen->requests(), at);
      }
      EXPECT_EQ(errors, requests) << "each of these faults is noticed: " << test.text << ", lasting "
                                  << lasting;
    }
  }
}

TEST(VerifiedTier, WithoutItAFlippedBitGoesUnseen) {
  // The guard of the test above: the fault is real.
  FaultyTierOptions faults;
  faults.fault = TierFault{TierFault::Kind::flipped_bit, 1, false};
  Traffic traffic(kFourSizes);
  const MadeTier made = faulty(VerifyMode::off, faults);
  EXPECT_EQ(traffic.round_trip(*made.tier, 5), 1);
}

TEST(VerifiedTier, SamplesEveryPage) {
  PageBuffer buffer(64 * 4096 + 100);
  buffer.fill(1);
  const auto hash = [&](std::uint64_t generation) {
    return hash_extent(buffer.data(), buffer.size_bytes(), 3, generation, VerifyMode::sampled);
  };
  const std::uint64_t before = hash(1);
  EXPECT_NE(before, hash(2));
  EXPECT_NE(before, hash_extent(buffer.data(), buffer.size_bytes(), 4, 1, VerifyMode::sampled));
  // A page that is wrong as a whole is seen, whichever it is.
  for (std::int64_t page = 0; page <= 64; ++page) {
    const std::int64_t end = std::min<std::int64_t>(buffer.size_bytes(), (page + 1) * 4096);
    for (std::int64_t i = page * 4096; i < end; ++i) buffer.data()[i] ^= std::byte{0xFF};
    EXPECT_NE(hash(1), before) << "page " << page;
    for (std::int64_t i = page * 4096; i < end; ++i) buffer.data()[i] ^= std::byte{0xFF};
  }
  EXPECT_EQ(hash(1), before);
  // Over the generations the samples fall on every part of a page.
  int seen = 0;
  for (std::uint64_t generation = 1; generation <= 1000; ++generation) {
    const std::uint64_t whole = hash(generation);
    buffer.data()[5 * 4096 + 77] ^= std::byte{1};
    seen += hash(generation) != whole ? 1 : 0;
    buffer.data()[5 * 4096 + 77] ^= std::byte{1};
  }
  EXPECT_GT(seen, 0);
  EXPECT_LT(seen, 50);
}

TEST(VerifiedTier, ReadingWhatWasNeverWrittenIsAnInternalError) {
  Traffic traffic(kFourSizes);
  const MadeTier made = faulty(VerifyMode::sampled, {});
  EXPECT_THROW(made.tier->read(0, traffic.in(0).data()), InternalError);
}

TEST(ThrottledTier, EachDirectionHasItsOwnPace) {
  TierOptions options;
  options.kind = TierKind::ram;
  options.verify = VerifyMode::off;
  options.read_bytes_per_second = 20'000'000;
  options.write_bytes_per_second = 50'000'000;
  const LongVector<std::int64_t> sizes(4, 500'000);
  Traffic traffic(sizes);
  const MadeTier made = make_tier(options, sizes);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(traffic.round_trip(*made.tier, 1), 0);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  // 2 MB at 20 MB/s; the writes at 50 MB/s pass beside them. A lower bound is no matter of timing luck.
  EXPECT_GE(seconds, 0.1);
  const TierStats stats = made.tier->stats();
  EXPECT_NEAR(stats.read_seconds, 0.1, 1e-9);
  EXPECT_NEAR(stats.write_seconds, 0.04, 1e-9);
  EXPECT_GT(stats.stalls, 0);
}

TEST(ThrottledTier, DoneWaitsForTheLink) {
  TierOptions options;
  options.kind = TierKind::ram;
  options.verify = VerifyMode::off;
  options.write_bytes_per_second = 1'000'000;
  Traffic traffic({50'000});
  const MadeTier made = make_tier(options, {50'000});
  const Ticket ticket = made.tier->write(0, traffic.out(0).data());
  EXPECT_FALSE(made.tier->done(ticket));
  made.tier->wait(ticket);
  EXPECT_TRUE(made.tier->done(ticket));
}

}  // namespace
}  // namespace penstock
