#include <gtest/gtest.h>

#include "fit/fit.h"
#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"
#include "run/toy.h"

namespace penstock::fit {
namespace {

struct LimitedSubject {
  explicit LimitedSubject(std::uint64_t seed)
      : training(run::toy_executable(plan::random_step(seed, {8, 65536, true}))) {
    steps.training = &training;
  }

  Request request(std::int64_t budget, PoolKind pool, Policy policy, std::int64_t tier_bytes) const {
    Request request;
    request.division.budget_bytes = budget;
    request.division.beside = {{"program", 1000}};
    request.pool = pool;
    request.policy = policy;
    request.tier_bytes = tier_bytes;
    return request;
  }

  lower::Executable training;
  Steps steps;
};

/// Space for every storage at once is all that a plan can take.
TEST(FitTierSpace, ALimitThatNoPlanReachesIsNone) {
  const LimitedSubject subject(1);
  const StorageMap map = map_slots(subject.steps.all());
  std::int64_t all = 0;
  for (const std::int64_t bytes : map.storage_bytes()) all += plan::place_bytes(bytes);
  EXPECT_EQ(limit_that_counts(subject.steps, all), plan::kNoLimit);
  EXPECT_EQ(limit_that_counts(subject.steps, all - 1), all - 1);
  EXPECT_EQ(limit_that_counts(subject.steps, 0), 0);
}

/// Fits keep a limit of the space on the tier, and a refusal names memory with which the policy can do and
/// space with which the budget does.
TEST(FitTierSpace, IsKeptOrTheRefusalNamesWhatWouldDo) {
  int kept = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const LimitedSubject subject(seed);
    for (const PoolKind pool : {PoolKind::packed, PoolKind::paged}) {
      // Without those that would estimate times from shapes that these toy ops do not have.
      for (const Policy policy : {Policy::window, Policy::lms, Policy::superneurons}) {
        std::int64_t budget = 0;
        try {
          first_fit(subject.steps, subject.request(0, pool, policy, plan::kNoLimit));
        } catch (const plan::BudgetError& error) {
          EXPECT_EQ(error.needed_tier_bytes(), 0);
          const Request all = subject.request(0, pool, policy, plan::kNoLimit);
          budget = (error.needed_bytes() + in_memory_bytes(subject.steps, all)) / 2;
        }
        const Fit any = first_fit(subject.steps, subject.request(budget, pool, policy, plan::kNoLimit));
        const plan::Profile profile = plan::random_profile(any.training->problem, 1, 1e8);
        for (const int quarters : {3, 1, 0}) {
          const std::int64_t space = any.map.tier_bytes * quarters / 4;
          const Request request = subject.request(budget, pool, policy, space);
          try {
            first_fit(subject.steps, request);
            const Fit fit = best_fit(subject.steps, request, &profile);
            EXPECT_LE(fit.map.tier_bytes, space);
            EXPECT_LE(fit.pool_bytes(), budget - 1000);
            EXPECT_TRUE(plan::check(fit.training->problem, fit.training->plan).ok);
            ++kept;
          } catch (const plan::BudgetError& error) {
            ++refused;
            EXPECT_GT(error.needed_bytes(), budget);
            EXPECT_GT(error.needed_tier_bytes(), space);
            EXPECT_LE(first_fit(subject.steps, subject.request(error.needed_bytes(), pool, policy, space))
                          .map.tier_bytes,
                      space);
            EXPECT_LE(
                first_fit(subject.steps, subject.request(budget, pool, policy, error.needed_tier_bytes()))
                    .map.tier_bytes,
                error.needed_tier_bytes());
          }
        }
      }
    }
  }
  EXPECT_GT(kept, 5);
  EXPECT_GT(refused, 5);
}

}  // namespace
}  // namespace penstock::fit
