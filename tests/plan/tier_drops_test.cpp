#include "plan/tier_drops.h"

#include <gtest/gtest.h>

#include "plan/make_plan.h"
#include "plan/policies.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"
#include "plan/simulator.h"
#include "plan/tier_places.h"

namespace penstock::plan {
namespace {

int count_of(const Problem& problem, const SwapSet& gaps) {
  int count = 0;
  for (std::size_t s = 0; s < problem.storages.size(); ++s) {
    for (std::size_t k = 0; k < problem.storages[s].accesses.size(); ++k)
      count += gaps.contains(static_cast<ir::StorageId>(s), k) ? 1 : 0;
  }
  return count;
}

/// Nothing is dropped where there is space, more and more where there is less, and only what can be made
/// anew.
TEST(TierDrops, AreMoreWhereThereIsLessSpace) {
  int dropped = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const RandomStep step = random_step(seed, {static_cast<int>(8 + seed), 16384, true});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kNoLimit, 256));
    const Profile profile = random_profile(problem, seed, 3e7);
    problem.budget_bytes = (7 * smallest_bytes(problem) + keep_bytes(problem)) / 8;
    const Plan swapping = plan_window(problem);
    Recomputer recomputer(problem, Recomputer::kHoldLittle);
    const std::vector<Droppable> droppable = find_droppable(problem, profile, recomputer);
    const TierDrops drops(problem, swapping, droppable, recomputer);
    EXPECT_EQ(drops.peak_bytes(), tier_peak_bytes(problem, tier_stays(problem, swapping)));
    EXPECT_EQ(count_of(problem, drops.within(drops.peak_bytes())), 0);
    int before = 0;
    for (const int eighths : {6, 4, 2, 0}) {
      const SwapSet gaps = drops.within(drops.peak_bytes() * eighths / 8);
      const int count = count_of(problem, gaps);
      EXPECT_GE(count, before);
      before = count;
      int known = 0;
      for (const Droppable& gap : droppable) known += gaps.contains(gap.storage, gap.access) ? 1 : 0;
      EXPECT_EQ(known, count);
    }
    dropped += before;
  }
  EXPECT_GT(dropped, 30);
}

/// `auto` does with less and less space on the tier, and never is far slower for having a little less.
TEST(TierDrops, AutoComputesAgainWhatTheTierCannotHold) {
  int plans = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const RandomStep step = random_step(seed, {static_cast<int>(8 + seed), 16384, true});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kNoLimit, 256));
    const Profile profile = random_profile(problem, seed, 1e8);
    problem.budget_bytes = (3 * smallest_bytes(problem) + keep_bytes(problem)) / 4;
    const std::int64_t all = tier_peak_bytes(problem, tier_stays(problem, plan_window(problem)));
    PlanOptions options;
    options.policy = PolicyKind::automatic;
    options.profile = &profile;
    const double free = simulate(problem, make_plan(problem, options), profile).step_seconds;
    for (const int eighths : {6, 4}) {
      problem.tier_bytes = all * eighths / 8;
      try {
        const Plan plan = make_plan(problem, options);
        EXPECT_LE(plan.summary.tier_bytes, problem.tier_bytes);
        EXPECT_LT(simulate(problem, plan, profile).step_seconds, 2 * free) << seed << " " << eighths;
        ++plans;
      } catch (const UserError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(plans, 10);
  EXPECT_LT(refused, 4);
}

}  // namespace
}  // namespace penstock::plan
