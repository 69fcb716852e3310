// What a long step takes for each op and storage: in its description, while it is planned, and while it runs.
// A batch in slices makes hundreds of thousands of these, and all of them come out of the budget.
#include <gtest/gtest.h>

#include <optional>

#include "base/paged_memory.h"
#include "fit/fit.h"
#include "models/network_graph.h"
#include "plan/budget_error.h"
#include "plan/estimate.h"
#include "session/division.h"
#include "session/heap_count.h"
#include "session/pace.h"
#include "session/program.h"
#include "session/runner.h"
#include "support/classifier_builder.h"
#include "tier/swap_dir.h"

namespace penstock::session {
namespace {

Network blocks(std::int64_t batch) {
  testing::ClassifierBuilder b("blocks", {batch, 3, 8, 8});
  Value x = b.relu(b.batch_norm("bn0", b.conv("conv0", b.images(), 16, {.padding = {1}})));
  for (const std::string name : {"1", "2", "3"}) {
    const Value y = b.relu(b.batch_norm("bn" + name, b.conv("conv" + name, x, 16, {.padding = {1}})));
    x = b.add(x, y);
  }
  return models::make_network(b.finish(b.linear("classifier", b.flatten(b.global_avg_pool(x)), 10)));
}

class LongStep : public ::testing::Test {
 protected:
  explicit LongStep(std::int64_t slices = 600) {
    ProgramRequest request;
    request.optimizer = &optimizer_;
    request.slice_samples = 1;
    const std::int64_t before = testing::heap_bytes();
    program_ = make_program(blocks(slices), request);
    program_bytes_ = testing::heap_bytes() - before;
  }

  std::int64_t ops() const { return static_cast<std::int64_t>(program_.training->graph.ops.size()); }
  std::int64_t storages() const { return program_.training->graph.storages; }
  double each(std::int64_t bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(ops() + storages());
  }

  /// The best that one walk over the step finds within little more than the smallest budget, of all pools.
  fit::Fit tight_fit(std::optional<PoolKind> pool) const {
    fit::Request asked;
    asked.pool = pool;
    asked.policy = Policy::window;
    try {
      fit::first_fit(program_.steps(), asked);
    } catch (const plan::BudgetError& error) {
      asked.division.budget_bytes = error.needed_bytes() * 5 / 4;
    }
    const plan::Profile profile = plan::estimate_profile(plan::make_problem(
        program_.training->graph, program_.training->scratch_bytes, plan::grain_rule(0, 64)));
    return fit::best_fit(program_.steps(), asked, &profile);
  }

  Optimizer optimizer_;
  Program program_;
  std::int64_t program_bytes_ = 0;
};

TEST_F(LongStep, IsDescribedInLittleMemory) {
  EXPECT_GT(ops(), 10000);
  EXPECT_LT(each(program_bytes_), 155);
}

TEST_F(LongStep, IsPlannedInWhatIsCountedForIt) {
  for (const std::optional<PoolKind> pool :
       {std::optional(PoolKind::packed), std::optional(PoolKind::paged), std::optional<PoolKind>()}) {
    const std::int64_t before = testing::heap_bytes();
    testing::heap_peak_bytes();
    tight_fit(pool);
    const std::int64_t taken = testing::heap_peak_bytes() - before;
    EXPECT_LT(taken, walk_guess(ops(), storages()).all()) << each(taken) << " bytes each";
  }
}

TEST_F(LongStep, RunsInWhatIsCountedForIt) {
  for (const PoolKind pool : {PoolKind::packed, PoolKind::paged}) {
    const std::int64_t before = testing::heap_bytes();
    TierOptions tier;
    tier.kind = TierKind::ram;
    tier.verify = VerifyMode::full;
    fit::Fit fit = tight_fit(pool);
    const auto instructions = static_cast<std::int64_t>(fit.training->plan.instructions.size());
    fit::shed_problems(fit);
    const std::int64_t of_fit = testing::heap_bytes() - before;
    const Runner runner(program_, std::move(fit), tier);
    const Pace pace(program_.steps());
    // Its fastest step, the one that is compared with it, and the times that it gets.
    const std::int64_t of_times = ops() * static_cast<std::int64_t>(2 * sizeof(float) + sizeof(run::OpTime));
    // The tier's memory itself is not of the heap.
    const std::int64_t of_runner = testing::heap_bytes() - before - of_fit;
    const std::int64_t taken = of_fit + of_runner + of_times;
    EXPECT_LT(taken, plan_guess(ops(), storages()).all()) << each(taken) << " bytes each";
    // Once the plan is there, the rest is counted from its size.
    EXPECT_LT(of_runner + of_times, running_guess(ops(), storages(), 0, instructions).all());
  }
}

TEST_F(LongStep, IsNotSlowerWithMoreSpaceOnTheTier) {
  fit::Request asked;
  asked.pool = PoolKind::packed;
  asked.policy = Policy::automatic;
  try {
    fit::first_fit(program_.steps(), asked);
  } catch (const plan::BudgetError& error) {
    asked.division.budget_bytes = error.needed_bytes() * 2;
  }
  plan::Profile profile = plan::estimate_profile(plan::make_problem(
      program_.training->graph, program_.training->scratch_bytes, plan::grain_rule(0, 64)));
  // Reading takes about as long as computing, so that some of both is best.
  for (double* bandwidth : {&profile.tier.read_bandwidth, &profile.tier.write_bandwidth,
                            &profile.tier.read_bandwidth_together, &profile.tier.write_bandwidth_together})
    *bandwidth = 3e7;
  const fit::Fit unlimited = fit::best_fit(program_.steps(), asked, &profile);
  asked.tier_bytes = unlimited.map.tier_bytes * 9 / 10;
  const fit::Fit limited = fit::best_fit(program_.steps(), asked, &profile);
  EXPECT_LT(unlimited.predicted_seconds(), 1.01 * limited.predicted_seconds());
  EXPECT_GT(unlimited.prediction->recompute_seconds, 0);
  // Where hardly anything is swapped, the search ends before its plans do.
  asked.tier_bytes = plan::kNoLimit;
  asked.division.budget_bytes = fit::in_memory_bytes(program_.steps(), asked) * 9 / 10;
  EXPECT_LT(fit::best_fit(program_.steps(), asked, &profile).predicted_seconds(),
            unlimited.predicted_seconds());
}

/// Holds paged memory before the step is described.
class WithPagedMemory {
 protected:
  WithPagedMemory() {
    if (!memory_.works()) ADD_FAILURE() << "there is no folder on disk";
  }
  PagedMemory memory_{default_swap_dir(), kMiB};
};

/// One with so many entries that vectors of them are paged.
class PagedStep : public WithPagedMemory, public LongStep {
 protected:
  PagedStep() : LongStep(1600) {}
};

TEST_F(PagedStep, TakesLittleOfTheHeap) {
  EXPECT_GT(ops() + storages(), 64 * kKiB);
  EXPECT_LT(each(program_bytes_), 36);
  EXPECT_GT(paged_bytes(), (ops() + storages()) * 80);
  for (const std::optional<PoolKind> pool :
       {std::optional(PoolKind::packed), std::optional(PoolKind::paged), std::optional<PoolKind>()}) {
    const std::int64_t before = testing::heap_bytes();
    testing::heap_peak_bytes();
    const fit::Fit fit = tight_fit(pool);
    const std::int64_t taken = testing::heap_peak_bytes() - before;
    EXPECT_LT(taken, walk_guess(ops(), storages()).heap) << each(taken) << " bytes each";
  }
}

TEST_F(PagedStep, RunsInLittleOfTheHeap) {
  for (const PoolKind pool : {PoolKind::packed, PoolKind::paged}) {
    const std::int64_t before = testing::heap_bytes();
    TierOptions tier;
    tier.kind = TierKind::ram;
    tier.verify = VerifyMode::full;
    fit::Fit fit = tight_fit(pool);
    fit::shed_problems(fit);
    const Runner runner(program_, std::move(fit), tier);
    const Pace pace(program_.steps());
    const std::int64_t taken = testing::heap_bytes() - before;
    EXPECT_LT(taken, plan_guess(ops(), storages()).heap) << each(taken) << " bytes each";
  }
}

}  // namespace
}  // namespace penstock::session
