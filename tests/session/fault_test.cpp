#include <gtest/gtest.h>
#include <omp.h>

#include "base/error.h"
#include "models/network_graph.h"
#include "plan/budget_error.h"
#include "session/checkpoint.h"
#include "session/runner.h"
#include "support/classifier_builder.h"
#include "support/run_program.h"
#include "tier/faulty_file_io.h"
#include "tier/faulty_tier.h"

namespace penstock::session {
namespace {

/// A small network of everything that could depend on the tier: batch norm, dropout, momentum.
Network small_network() {
  testing::ClassifierBuilder b("small", {32, 1, 16, 16});
  ConvOptions same;
  same.padding = {1};
  Value x = b.relu(b.batch_norm("norm1", b.conv("conv1", b.images(), 16, same)));
  x = b.relu(b.batch_norm("norm2", b.conv("conv2", x, 16, same)));
  x = b.dropout(b.flatten(b.max_pool(x, {})), 0.2F);
  return models::make_network(b.finish(b.linear("classifier", b.relu(b.linear("hidden", x, 64)), 4)));
}

class Subject {
 public:
  Subject() : optimizer_(Optimizer::sgd(0, 0.9F)) {
    omp_set_num_threads(1);  // many runs of next to no work
    ProgramRequest request;
    request.optimizer = &optimizer_;
    program_ = make_program(small_network(), request);
  }

  /// Steps [first, last) of training from the seed or from a checkpoint, in as little memory as can be; the
  /// state's hash.
  std::string run(const TierMaker& maker, std::uint64_t first, std::uint64_t last,
                  const std::string& from = "", const std::string& to = "") {
    Runner runner(program_, fit::first_fit(program_.steps(), request(budget())), {}, maker);
    StateIo state(program_, runner.executor());
    state.initialise(3);
    if (!from.empty()) read_checkpoint(from, state, true);
    kernels::StepContext context;
    context.seed = 3;
    context.learning_rate = 0.05;
    context.feed = [](int input, void* to) {
      if (input == 0) {
        for (int i = 0; i < 32 * 256; ++i)
          static_cast<float*>(to)[i] = static_cast<float>(i * 37 % 101) / 50.0F - 1.0F;
      } else {
        for (int i = 0; i < 32; ++i) static_cast<std::int32_t*>(to)[i] = i % 4;
      }
    };
    for (context.step = first; context.step < last; ++context.step) runner.train_step(context);
    if (!to.empty()) {
      CheckpointHeader info;
      info.step = static_cast<std::int64_t>(last);
      info.seed = 3;
      write_checkpoint(to, info, state);
    }
    return state.sha256();
  }

 private:
  static fit::Request request(std::int64_t budget) {
    fit::Request request;
    request.policy = Policy::window;
    request.division.budget_bytes = budget;
    return request;
  }

  std::int64_t budget() {
    if (budget_ > 0) return budget_;
    try {
      fit::first_fit(program_.steps(), request(0));
    } catch (const plan::BudgetError& error) {
      budget_ = error.needed_bytes();
    }
    return budget_;
  }

  Optimizer optimizer_;
  Program program_;
  std::int64_t budget_ = 0;
};

/// A tier in memory that goes wrong as told, below the check of what comes back.
TierMaker faulty_tier(const FaultyTierOptions& faults) {
  return [=](TierOptions options, const TierExtents& extents) {
    options.kind = TierKind::ram;
    options.verify = VerifyMode::full;
    options.wrap = [&](std::unique_ptr<Tier> inner) {
      return std::make_unique<FaultyTier>(std::move(inner), faults);
    };
    return make_tier(options, extents);
  };
}

/// A tier on disk whose system calls go wrong as told.
TierMaker faulty_disk(const std::shared_ptr<FaultyFileIo>& io, TierKind kind) {
  return [=](TierOptions options, const TierExtents& extents) {
    options.kind = kind;
    options.file_io = io;
    return make_tier(options, extents);
  };
}

std::string keep_hash(Subject& subject) {
  static const std::string hash = subject.run(make_tier, 0, 2);
  return hash;
}

TEST(Faults, OrderAndDelaysOfTransfersChangeNoBit) {
  Subject subject;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    FaultyTierOptions faults;
    faults.random_order = true;
    faults.max_delay_seconds = seed % 2 == 0 ? 0 : 2e-4;
    faults.seed = seed;
    EXPECT_EQ(subject.run(faulty_tier(faults), 0, 2), keep_hash(subject));
  }
}

TEST(Faults, EveryTransferThatFailsIsAnErrorOrHarmless) {
  Subject subject;
  using Kind = TierFault::Kind;
  for (const Kind kind : {Kind::io_error, Kind::no_space, Kind::flipped_bit, Kind::stale, Kind::misplaced}) {
    for (const bool lasting : {false, true}) {
      int errors = 0;
      int harmless = 0;
      for (std::int64_t at = 0; at < 1000; ++at) {
        FaultyTierOptions faults;
        faults.fault = TierFault{kind, at, lasting};
        try {
          EXPECT_EQ(subject.run(faulty_tier(faults), 0, 2), keep_hash(subject));
          // Beyond the last transfer nothing can strike; one that does may hit what nobody reads again.
          if (++harmless == 20) break;
        } catch (const RunError&) {
          ++errors;
        }
      }
      EXPECT_GT(errors, 5) << "kind " << static_cast<int>(kind) << " lasting " << lasting;
    }
  }
}

TEST(Faults, ShortAndInterruptedCallsAreOvercome) {
  Subject subject;
  using Kind = FaultyFileIo::Kind;
  for (const TierKind kind : {TierKind::disk, TierKind::disk_threads}) {
    for (const FaultyFileIo::Plan& plan : {FaultyFileIo::Plan{Kind::short_count, 0, 0, true, 0, 0},
                                           FaultyFileIo::Plan{Kind::error, EINTR, 3, false, 0, 0},
                                           FaultyFileIo::Plan{Kind::error, EAGAIN, 5, false, 0, 0}}) {
      const auto io = std::make_shared<FaultyFileIo>(plan);
      EXPECT_EQ(subject.run(faulty_disk(io, kind), 0, 2), keep_hash(subject));
      EXPECT_GT(io->calls(), 5);
    }
  }
}

TEST(Faults, ALastingFaultLeavesTheCheckpointGood) {
  Subject subject;
  const testing::TemporaryFolder folder;
  const std::string whole = subject.run(make_tier, 0, 4);
  subject.run(make_tier, 0, 2, "", folder.path());
  for (const int error_number : {EIO, ENOSPC}) {
    for (const TierKind kind : {TierKind::disk, TierKind::disk_threads}) {
      for (std::int64_t at = 0; at < 30; at += 7) {
        const auto io = std::make_shared<FaultyFileIo>(
            FaultyFileIo::Plan{FaultyFileIo::Kind::error, error_number, at, true, 0, 0});
        EXPECT_THROW(subject.run(faulty_disk(io, kind), 2, 4, folder.path(), folder.path()), RunError) << at;
      }
    }
  }
  EXPECT_EQ(folder.list(), std::vector<std::string>{"checkpoint.safetensors"});
  EXPECT_EQ(subject.run(make_tier, 2, 4, folder.path()), whole);
}

TEST(Faults, AFullDiskIsRefusedBeforeTheFirstStep) {
  Subject subject;
  FaultyFileIo::Plan plan;
  plan.allocate_result = ENOSPC;
  EXPECT_THROW(subject.run(faulty_disk(std::make_shared<FaultyFileIo>(plan), TierKind::disk), 0, 1),
               UserError);
}

}  // namespace
}  // namespace penstock::session
