#include "plan/tier_space.h"

#include <gtest/gtest.h>

#include "plan/bound.h"
#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/make_plan.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"
#include "plan/simulator.h"

namespace penstock::plan {
namespace {

/// Plans of all policies keep a limit of the tier's space that they would exceed without; what does not fit
/// there is kept or computed again; and no plan beats a bound that knows the limit, nor is that below the one
/// that does not.
TEST(TierSpace, IsKeptByAllPoliciesAndKnownToTheBound) {
  int limited = 0, recomputed_more = 0, sharper = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const RandomStep step = random_step(seed, {static_cast<int>(3 + seed % 8), 8192, true});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kNoLimit, 256));
    const Profile profile = random_profile(problem, seed, 3e7);
    const std::int64_t smallest = smallest_bytes(problem), in_memory = keep_bytes(problem);
    problem.budget_bytes = (smallest + in_memory) / 2;
    for (const PolicyKind policy : all_policies()) {
      PlanOptions options;
      options.policy = policy;
      options.profile = &profile;
      Plan free;
      try {
        free = make_plan(problem, options);
      } catch (const BudgetError&) {
        continue;
      }
      EXPECT_EQ(tier_bytes(problem, free), free.summary.tier_bytes);
      if (free.summary.tier_bytes == 0) continue;
      Problem less = problem;
      less.tier_bytes = free.summary.tier_bytes - 1;
      EXPECT_FALSE(check(less, free).ok);
      for (const int part : {3, 2, 1, 0}) {
        less.tier_bytes = free.summary.tier_bytes * part / 4;
        const Bound bound = lower_bound(less, profile);
        EXPECT_GE(bound.seconds, lower_bound(problem, profile).seconds * (1 - 1e-9));
        sharper += bound.seconds > 1.001 * lower_bound(problem, profile).seconds ? 1 : 0;
        try {
          const Plan plan = make_plan(less, options);
          EXPECT_LE(plan.summary.tier_bytes, less.tier_bytes);
          EXPECT_GE(simulate(less, plan, profile).step_seconds, bound.seconds * (1 - 1e-9));
          recomputed_more += plan.summary.recomputed > free.summary.recomputed ? 1 : 0;
          ++limited;
        } catch (const BudgetError&) {
          ++refused;
        }
      }
    }
  }
  EXPECT_GT(limited, 15);
  EXPECT_GT(recomputed_more, 2);
  EXPECT_GT(sharper, 2);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace penstock::plan
