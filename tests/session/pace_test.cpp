#include "session/pace.h"

#include <gtest/gtest.h>

#include "plan/budget_error.h"
#include "session/toy_fit.h"

namespace penstock::session {
namespace {

/// What a tier has counted after `steps` steps of the plan at `share` of the speed that was measured.
TierStats counted(const ToyFit& toy, int steps, double share) {
  const plan::Summary& summary = toy.fit.training->plan.summary;
  TierStats stats;
  stats.read_bytes = steps * summary.swapped_in_bytes;
  stats.written_bytes = steps * summary.swapped_out_bytes;
  stats.read_seconds = steps * toy.fit.prediction->read_seconds / share;
  stats.write_seconds = steps * toy.fit.prediction->write_seconds / share;
  return stats;
}

TEST(Pace, SaysNothingWhileStepsTakeWhatWasPlanned) {
  const ToyFit toy(1);
  Pace pace(toy.steps);
  for (int step = 0; step < 30; ++step)
    EXPECT_FALSE(pace.after_step(toy.fit, toy.stats(1.01), toy.events(1), counted(toy, step + 1, 1), true));
  EXPECT_EQ(pace.replans(), 0);
}

TEST(Pace, TakesWhatWasSeenForTheProfile) {
  const ToyFit toy(1);
  Pace pace(toy.steps);
  std::optional<PaceChange> change;
  int looks = 0;
  for (int step = 0; step < 3 && !change; ++step, ++looks)
    change = pace.after_step(toy.fit, toy.stats(1.5), toy.events(1.5), counted(toy, step + 1, 1), true);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(looks, 3);  // neither the first step nor one alone says anything
  double before = 0, after = 0;
  for (std::size_t op = 0; op < toy.profile.op_seconds.size(); ++op) {
    before += toy.profile.op_seconds[op][0];
    after += change->fit.profile->op_seconds[op][0];
  }
  EXPECT_GT(after, 1.2 * before);
  EXPECT_GT(change->fit.predicted_seconds(), toy.fit.predicted_seconds());
}

TEST(Pace, PlansAgainWhereTheTierIsAnotherOneAndKeepsPoolAndExtents) {
  int replanned = 0;
  for (const PoolKind pool : {PoolKind::packed, PoolKind::paged}) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const ToyFit toy(seed, pool);
      if (toy.fit.training->plan.summary.swapped_in_bytes < (1 << 20)) continue;
      Pace pace(toy.steps);
      for (int step = 0; step < 12; ++step) {
        const auto change =
            pace.after_step(toy.fit, toy.stats(6), toy.events(1), counted(toy, step + 1, 0.05), true);
        if (!change || !change->replanned) continue;
        ++replanned;
        EXPECT_EQ(change->fit.size, toy.fit.size);
        EXPECT_EQ(change->fit.map.extent, toy.fit.map.extent);
        EXPECT_NE(change->line.find("planned again"), std::string::npos);
        EXPECT_LT(change->fit.profile->tier.read_bandwidth, 0.2 * toy.profile.tier.read_bandwidth);
        break;
      }
      EXPECT_LE(pace.replans(), 2);
    }
  }
  EXPECT_GT(replanned, 0);
}

TEST(Pace, LooksLessOftenWhereNothingCameOfIt) {
  const ToyFit toy(1);
  Pace pace(toy.steps);
  int changes = 0;
  for (int step = 0; step < 200; ++step) {
    // Everything is slower alike: no other plan is better.
    if (pace.after_step(toy.fit, toy.stats(1.3), toy.events(1.3), counted(toy, step + 1, 1), true)) ++changes;
  }
  EXPECT_GT(changes, 1);
  EXPECT_LT(changes, 8);
}

TEST(Pace, DoesNotPlanWithoutMemorySetAside) {
  const ToyFit toy(1);
  Pace pace(toy.steps);
  for (int step = 0; step < 20; ++step)
    EXPECT_FALSE(pace.after_step(toy.fit, toy.stats(3), toy.events(3), counted(toy, step + 1, 1), false));
}

TEST(Pace, KeepsTheFastestStepForTheNextRun) {
  const ToyFit toy(1);
  Pace pace(toy.steps);
  EXPECT_FALSE(pace.seen_profile(toy.fit, toy.profile, {}));
  for (const double factor : {9.0, 2.0, 1.2, 4.0})
    pace.after_step(toy.fit, toy.stats(factor), toy.events(factor), {}, false);
  const auto seen = pace.seen_profile(toy.fit, toy.profile, {});
  ASSERT_TRUE(seen.has_value());
  EXPECT_NEAR(seen->op_seconds[2][0], 1.2 * toy.profile.op_seconds[2][0], 0.3 * toy.profile.op_seconds[2][0]);
}

}  // namespace
}  // namespace penstock::session
