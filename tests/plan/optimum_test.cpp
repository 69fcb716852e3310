#include "plan/optimum.h"

#include <gtest/gtest.h>

namespace penstock::plan {
namespace {

TEST(Auto, IsNearTheOptimumOfSmallSteps) {
  const LongVector<OptimumGap> gaps = optimum_gaps(200, 8000);
  ASSERT_EQ(gaps.size(), 200U);
  LongVector<double> to_optimum;
  int searched = 0;
  for (const OptimumGap& gap : gaps) {
    EXPECT_GE(gap.to_bound, -1e-6);
    to_optimum.push_back(gap.to_optimum);
    searched += gap.to_bound > 1e-9 ? 1 : 0;
  }
  EXPECT_GT(searched, 100) << "too few steps need a search";
  EXPECT_LE(quantile(to_optimum, 0.5), 0.02);
  EXPECT_LE(quantile(to_optimum, 0.95), 0.10);
}

TEST(Optimum, LiesBetweenTheBoundAndThePolicies) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const RandomStep step = random_chain(seed, 4);
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(std::int64_t{1} << 40, 256));
    const Profile profile = random_profile(problem, seed, 1e7);
    problem.budget_bytes = (smallest_bytes(problem) + keep_bytes(problem)) / 2;
    const std::optional<double> optimum = OptimumSearch(problem, profile, 100000).search(1e9);
    ASSERT_TRUE(optimum.has_value());
    EXPECT_GE(*optimum * (1 + 1e-9), lower_bound(problem, profile).seconds);
    // Its plans are of the space that was searched.
    EXPECT_LE(*optimum, simulate(problem, plan_pooch(problem, profile), profile).step_seconds * (1 + 1e-9));
  }
}

}  // namespace
}  // namespace penstock::plan
