#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "tier/disk_tier.h"
#include "tier/faulty_file_io.h"
#include "tier/make_tier.h"
#include "tier/swap_file.h"
#include "tier/tier_fixture.h"

namespace penstock {
namespace {

const LongVector<std::int64_t> kSizes{1, 4096, 5000, 3 * kMiB + 17, 0, kMiB, 100'000};

TierOptions options_for(TierKind kind) {
  TierOptions options;
  options.kind = kind;
  options.swap_dir = test_swap_dir();
  options.verify = VerifyMode::off;
  return options;
}

std::string name_of(const testing::TestParamInfo<TierKind>& info) {
  switch (info.param) {
    case TierKind::disk:
      return "disk";
    case TierKind::disk_threads:
      return "disk_threads";
    case TierKind::ram:
      return "ram";
  }
  return "";
}

/// What every store must do.
class StoreTest : public testing::TestWithParam<TierKind> {
 protected:
  void TearDown() override {
    EXPECT_TRUE(std::filesystem::is_empty(test_swap_dir())) << "a file is left in the swap directory";
    std::filesystem::remove_all(test_swap_dir());
  }
};

TEST_P(StoreTest, BringsBackWhatWasWritten) {
  Traffic traffic(kSizes);
  const MadeTier made = make_tier(options_for(GetParam()), kSizes);
  for (std::uint64_t stamp = 1; stamp < 4; ++stamp) EXPECT_EQ(traffic.round_trip(*made.tier, stamp * 100), 0);
  const TierStats stats = made.tier->stats();
  EXPECT_EQ(stats.writes, 3 * 7);
  EXPECT_EQ(stats.reads, 3 * 7);
  EXPECT_GE(stats.written_bytes, 3 * (4 * kMiB + 100'000));
  EXPECT_EQ(stats.read_bytes, stats.written_bytes);
  EXPECT_GT(stats.read_seconds, 0);
  EXPECT_GT(stats.write_seconds, 0);
}

TEST_P(StoreTest, RequestsOnOneExtentKeepTheirOrder) {
  Traffic first({2 * kMiB});
  Traffic second({2 * kMiB});
  const MadeTier made = make_tier(options_for(GetParam()), {2 * kMiB});
  Tier& tier = *made.tier;
  for (std::uint64_t round = 0; round < 5; ++round) {
    first.out(0).fill(2 * round);
    second.out(0).fill(2 * round + 1);
    // The urgent read must see the write before it, not the one after it.
    const Ticket a = tier.write(0, first.out(0).data());
    const Ticket b = tier.read(0, first.in(0).data(), Priority::urgent);
    const Ticket c = tier.write(0, second.out(0).data(), Priority::urgent);
    const Ticket d = tier.read(0, second.in(0).data());
    for (const Ticket ticket : {d, c, b, a}) tier.wait(ticket);
    EXPECT_TRUE(first.in(0).holds(2 * round));
    EXPECT_TRUE(second.in(0).holds(2 * round + 1));
  }
}

TEST_P(StoreTest, RandomTrafficAgainstAModel) {
  const LongVector<std::int64_t> sizes{300'000, 4096, 2 * kMiB, 70'000, 1'500'000, 12'288};
  Traffic traffic(sizes);
  const MadeTier made = make_tier(options_for(GetParam()), sizes);
  Tier& tier = *made.tier;
  const CounterRandom random(3, RandomPurpose::synthetic, 0, 5);
  std::map<int, std::uint64_t> stored;
  std::map<int, Ticket> writing;
  for (std::uint32_t i = 0; i < 150; ++i) {
    const auto extent = static_cast<int>(random.bits(2 * i) % sizes.size());
    if (writing.contains(extent)) tier.wait(writing[extent]);
    writing.erase(extent);
    if (random.bits(2 * i + 1) % 2 == 0 || !stored.contains(extent)) {
      traffic.out(extent).fill(i);
      writing[extent] = tier.write(extent, traffic.out(extent).data());
      stored[extent] = i;
    } else {
      const Ticket ticket = tier.read(extent, traffic.in(extent).data());
      tier.wait(ticket);
      ASSERT_TRUE(tier.done(ticket));
      ASSERT_TRUE(traffic.in(extent).holds(stored[extent]));
    }
  }
}

TEST_P(StoreTest, EndsWithRequestsUnderWay) {
  for (int round = 0; round < 3; ++round) {
    Traffic traffic({24 * kMiB});
    const MadeTier made = make_tier(options_for(GetParam()), {24 * kMiB});
    made.tier->write(0, traffic.out(0).data());
    made.tier->read(0, traffic.in(0).data());
  }
}

TEST_P(StoreTest, PassingFaultsAreOvercome) {
  using Kind = FaultyFileIo::Kind;
  for (const auto& [kind, number] :
       {std::pair{Kind::short_count, 0}, {Kind::error, EINTR}, {Kind::error, EAGAIN}}) {
    std::int64_t calls = 1;
    const LongVector<std::int64_t> sizes{1, 5000, kMiB + 40'000, 0, 100'000};
    for (std::int64_t at = 0; at < calls; ++at) {
      auto io = std::make_shared<FaultyFileIo>(FaultyFileIo::Plan{kind, number, at, false, 0, 0});
      TierOptions options = options_for(GetParam());
      options.file_io = io;
      Traffic traffic(sizes);
      const MadeTier made = make_tier(options, sizes);
      EXPECT_EQ(traffic.round_trip(*made.tier, 9), 0) << "fault at call " << at;
      EXPECT_EQ(made.tier->stats().read_bytes, made.tier->stats().written_bytes);
      calls = io->calls();
    }
    EXPECT_GE(calls, 10);
  }
}

TEST_P(StoreTest, EndlessShortTransfersStillArrive) {
  auto io =
      std::make_shared<FaultyFileIo>(FaultyFileIo::Plan{FaultyFileIo::Kind::short_count, 0, 0, true, 0, 0});
  TierOptions options = options_for(GetParam());
  options.file_io = io;
  Traffic traffic({2 * kMiB});
  const MadeTier made = make_tier(options, {2 * kMiB});
  EXPECT_EQ(traffic.round_trip(*made.tier, 9), 0);
  EXPECT_GT(io->calls(), 20);
}

TEST_P(StoreTest, LastingFaultsAreOneClearError) {
  using Kind = FaultyFileIo::Kind;
  const LongVector<std::pair<FaultyFileIo::Plan, std::string>> cases{
      {{Kind::error, EIO, 0, true, 0, 0}, "Input/output error"},
      {{Kind::error, ENOSPC, 3, true, 0, 0}, "No space left"},
      {{Kind::error, EIO, 9, false, 0, 0}, "Input/output error"},
      {{Kind::error, EINTR, 4, true, 0, 0}, "no progress"},
      {{Kind::no_count, 0, 0, true, 0, 0}, "no progress"},
  };
  for (const auto& [plan, text] : cases) {
    TierOptions options = options_for(GetParam());
    options.file_io = std::make_shared<FaultyFileIo>(plan);
    Traffic traffic(kSizes);
    const MadeTier made = make_tier(options, kSizes);
    try {
      traffic.round_trip(*made.tier, 9);
      ADD_FAILURE() << "no error for " << text;
    } catch (const RunError& error) {
      EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr(text), testing::HasSubstr("extent")));
    }
    // The first error stays.
    const Ticket later = made.tier->write(0, traffic.out(0).data());
    EXPECT_THROW(made.tier->wait(later), RunError);
    EXPECT_TRUE(made.tier->done(later));
  }
}

TEST_P(StoreTest, AFullDiskIsRefusedAtStart) {
  TierOptions options = options_for(GetParam());
  options.file_io =
      std::make_shared<FaultyFileIo>(FaultyFileIo::Plan{FaultyFileIo::Kind::none, 0, 0, false, -ENOSPC, 0});
  try {
    make_tier(options, kSizes);
    FAIL() << "the disk was full";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("4.12 MiB"));
  }
}

INSTANTIATE_TEST_SUITE_P(All, StoreTest,
                         testing::Values(TierKind::disk, TierKind::disk_threads, TierKind::ram), name_of);

TEST(DiskTier, FallsBackToThreadsWhereARingIsRefused) {
  TierOptions options = options_for(TierKind::disk);
  options.file_io =
      std::make_shared<FaultyFileIo>(FaultyFileIo::Plan{FaultyFileIo::Kind::none, 0, 0, false, 0, -EPERM});
  Traffic traffic(kSizes);
  const MadeTier made = make_tier(options, kSizes);
  EXPECT_EQ(made.description, "disk (threads)");
  EXPECT_THAT(made.notes, testing::Contains(testing::HasSubstr("Operation not permitted")));
  EXPECT_EQ(traffic.round_trip(*made.tier, 1), 0);
  std::filesystem::remove_all(test_swap_dir());
}

TEST(DiskTier, FallsBackToThreadsWhereARingKnowsNoReads) {
  FaultyFileIo::Plan plan;
  plan.ring_without_opcodes = true;
  TierOptions options;
  options.swap_dir = test_swap_dir();
  options.file_io = std::make_shared<FaultyFileIo>(plan);
  const LongVector<std::int64_t> extents{10'000, 2 * kMiB};
  Traffic traffic(extents);
  const MadeTier made = make_tier(options, extents);
  EXPECT_EQ(made.description, "disk (threads)");
  ASSERT_EQ(made.notes.size(), 1U);
  EXPECT_NE(made.notes[0].find("io_uring"), std::string::npos);
  EXPECT_EQ(traffic.round_trip(*made.tier, 1), 0);
}

TEST_P(StoreTest, WhatIsThrownInItsThreadIsAnErrorOfTheWait) {
  for (std::int64_t at = 0; at < 8; ++at) {
    FaultyFileIo::Plan plan;
    plan.kind = FaultyFileIo::Kind::throws;
    plan.at = at;
    TierOptions options;
    options.kind = GetParam();
    options.swap_dir = test_swap_dir();
    options.file_io = std::make_shared<FaultyFileIo>(plan);
    const LongVector<std::int64_t> extents{3 * kMiB, 10'000, 2 * kMiB};
    Traffic traffic(extents);
    const MadeTier made = make_tier(options, extents);
    EXPECT_THROW(traffic.round_trip(*made.tier, 1), RunError) << at;
    EXPECT_THROW(traffic.round_trip(*made.tier, 2), RunError) << at;
  }
}

int threads_left = 0;

TEST_P(StoreTest, GoesOnWithTheThreadsThatThereAre) {
  for (const int threads : {0, 1, 3}) {
    threads_left = threads;
    set_thread_maker([](std::function<void()> body) {
      if (threads_left-- <= 0) {
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
      }
      return std::thread(std::move(body));
    });
    TierOptions options;
    options.kind = GetParam();
    options.swap_dir = test_swap_dir();
    const LongVector<std::int64_t> extents{3 * kMiB, 10'000, 2 * kMiB};
    Traffic traffic(extents);
    if (threads == 0) {
      EXPECT_THROW(make_tier(options, extents), RunError);
    } else {
      EXPECT_EQ(traffic.round_trip(*make_tier(options, extents).tier, 1), 0);
    }
    set_thread_maker(nullptr);
  }
}

TEST(DiskTier, UsesARingWhereItMay) {
  FileIo io;
  if (DiskTier::probe(io) != 0) GTEST_SKIP() << "no io_uring here";
  const MadeTier made = make_tier(options_for(TierKind::disk), kSizes);
  EXPECT_EQ(made.description, "disk (io_uring)");
  std::filesystem::remove_all(test_swap_dir());
}

TEST(RamTier, RefusesMoreThanThereIs) {
  TierOptions options = options_for(TierKind::ram);
  options.ram_available_bytes = kMiB;
  EXPECT_THROW(make_tier(options, {2 * kMiB}), UserError);
  EXPECT_NO_THROW(make_tier(options, {kMiB}));
}

TEST(SwapFile, IsNamelessPrivateAndAllocated) {
  FileIo io;
  const SwapFile file = SwapFile::on_disk(test_swap_dir(), kMiB, io);
  EXPECT_TRUE(std::filesystem::is_empty(test_swap_dir()));
  struct stat status {};
  ASSERT_EQ(::fstat(file.descriptor(), &status), 0);
  EXPECT_EQ(status.st_nlink, 0U);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_EQ(status.st_size, kMiB);
  if (file.reserved()) {
    EXPECT_GE(status.st_blocks * 512, kMiB);
  }
  EXPECT_EQ(file.direct(), (::fcntl(file.descriptor(), F_GETFL) & O_DIRECT) != 0);
  std::filesystem::remove_all(test_swap_dir());
}

}  // namespace
}  // namespace penstock
