#include "plan/tier_places.h"

#include <gtest/gtest.h>

#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/excursions.h"
#include "plan/make_plan.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"

namespace penstock::plan {
namespace {

/// Plans of all policies on random steps, and those of `keep` with excursions.
template <typename Use>
void for_each_swapping_plan(const Use& use) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const RandomStep step = random_step(seed, {static_cast<int>(3 + seed % 8), 16384, true});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kNoLimit, 256));
    const Profile profile = random_profile(problem, seed, 3e7);
    problem.budget_bytes = (3 * smallest_bytes(problem) + keep_bytes(problem)) / 4;
    for (const PolicyKind policy : all_policies()) {
      PlanOptions options;
      options.policy = policy;
      options.profile = &profile;
      try {
        const Plan plan = make_plan(problem, options);
        if (plan.summary.tier_bytes > 0) use(problem, plan);
      } catch (const BudgetError&) {
        continue;
      }
    }
    problem.budget_bytes = kNoLimit;
    Plan fidgety = plan_keep(problem);
    add_excursions(problem, fidgety);
    const SolvedProblem solved{&problem, &fidgety};
    fidgety.places = place_on_tier({&solved, 1}).offsets;
    prove(problem, fidgety);
    use(problem, fidgety);
  }
}

bool meet(const TierStay& a, const TierStay& b) {
  return a.first <= b.last && b.first <= a.last;
}

TEST(TierPlaces, StaysReachFromTheWriteToTheLastRead) {
  int stays_seen = 0;
  for_each_swapping_plan([&](const Problem& problem, const Plan& plan) {
    const LongVector<TierStay> stays = tier_stays(problem, plan);
    const auto last = static_cast<std::int64_t>(plan.instructions.size()) - 1;
    LongVector<LongVector<TierStay>> of(problem.storages.size());
    for (const TierStay& stay : stays) of[static_cast<std::size_t>(stay.storage)].push_back(stay);
    for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
      const Instruction& in = plan.instructions[i];
      if (in.action != Action::swap_out && in.action != Action::swap_in && in.action != Action::wait)
        continue;
      const TierStay now{in.id, static_cast<std::int64_t>(i), static_cast<std::int64_t>(i)};
      int within = 0;
      for (const TierStay& stay : of[static_cast<std::size_t>(in.id)]) within += meet(stay, now) ? 1 : 0;
      EXPECT_EQ(within, 1) << plan.policy << " " << i;
    }
    for (const TierStay& stay : stays) {
      ++stays_seen;
      const bool carried = problem.storage(stay.storage).carried;
      EXPECT_TRUE(!carried || (stay.first == 0 && stay.last == last));
      const Instruction& begins = plan.instructions[static_cast<std::size_t>(stay.first)];
      EXPECT_TRUE(carried || (begins.action == Action::swap_out && begins.id == stay.storage));
    }
  });
  EXPECT_GT(stays_seen, 100);
}

TEST(TierPlaces, NoTwoAtATimeOverlapAndSpaceIsShared) {
  int plans = 0, shared = 0;
  for_each_swapping_plan([&](const Problem& problem, const Plan& plan) {
    ++plans;
    const LongVector<TierStay> stays = tier_stays(problem, plan);
    std::int64_t apart = 0;
    for (std::size_t s = 0; s < problem.storages.size(); ++s) {
      if (plan.places[s] >= 0) apart += place_bytes(problem.storages[s].size_bytes);
    }
    EXPECT_GE(plan.summary.tier_bytes, tier_peak_bytes(problem, stays));
    EXPECT_LE(plan.summary.tier_bytes, apart);
    shared += plan.summary.tier_bytes < apart ? 1 : 0;
    for (const TierStay& a : stays) {
      for (const TierStay& b : stays) {
        if (a.storage == b.storage || !meet(a, b)) continue;
        const std::int64_t from = plan.places[static_cast<std::size_t>(a.storage)];
        const std::int64_t other = plan.places[static_cast<std::size_t>(b.storage)];
        EXPECT_TRUE(from + place_bytes(problem.storage(a.storage).size_bytes) <= other ||
                    other + place_bytes(problem.storage(b.storage).size_bytes) <= from);
      }
    }
  });
  EXPECT_GT(plans, 30);
  EXPECT_GT(shared, 10);
}

/// Wherever two storages need their place at the same time, the checker refuses that they share it; state may
/// share it with nobody.
TEST(TierPlaces, TheCheckerRefusesWhatOverlaps) {
  int refused = 0;
  for_each_swapping_plan([&](const Problem& problem, const Plan& plan) {
    const LongVector<TierStay> stays = tier_stays(problem, plan);
    for (std::size_t i = 0; i < stays.size(); i += 3) {
      for (std::size_t j = 0; j < stays.size(); ++j) {
        const TierStay &a = stays[i], &b = stays[j];
        if (a.storage == b.storage || !meet(a, b)) continue;
        Plan wrong = plan;
        wrong.places[static_cast<std::size_t>(a.storage)] = plan.places[static_cast<std::size_t>(b.storage)];
        EXPECT_FALSE(check(problem, wrong).ok) << plan.policy;
        ++refused;
      }
    }
    for (const std::int64_t nowhere : {std::int64_t{-1}, std::int64_t{-4096}, std::int64_t{100}}) {
      Plan wrong = plan;
      wrong.places[static_cast<std::size_t>(stays.front().storage)] = nowhere;
      EXPECT_FALSE(check(problem, wrong).ok);
    }
    Plan fewer = plan;
    fewer.places.pop_back();
    EXPECT_FALSE(check(problem, fewer).ok);
    Problem less = problem;
    less.tier_bytes = plan.summary.tier_bytes - 1;
    EXPECT_FALSE(check(less, plan).ok);
  });
  EXPECT_GT(refused, 200);
}

/// Two plans that run in turn share all but the state, which lies at the same place for both; what is fixed
/// stays where it is.
TEST(TierPlaces, PlansShareWhatIsNotState) {
  for_each_swapping_plan([&](const Problem& problem, const Plan& plan) {
    const SolvedProblem twice[] = {{&problem, &plan}, {&problem, &plan}};
    const TierPlaces once = place_on_tier({twice, 1});
    EXPECT_EQ(once.offsets, plan.places);
    EXPECT_EQ(place_on_tier(twice).bytes, once.bytes);
    LongVector<std::int64_t> fixed(problem.storages.size(), -1);
    for (const ir::StorageId s : problem.state()) {
      if (plan.places[static_cast<std::size_t>(s)] < 0) continue;
      fixed[static_cast<std::size_t>(s)] = plan.places[static_cast<std::size_t>(s)] + (1 << 20);
    }
    const TierPlaces again = place_on_tier(twice, fixed);
    for (std::size_t s = 0; s < fixed.size(); ++s) {
      EXPECT_TRUE(fixed[s] < 0 || again.offsets[s] == fixed[s]);
    }
    Plan moved = plan;
    moved.places = again.offsets;
    EXPECT_TRUE(check(problem, moved).ok);
  });
}

}  // namespace
}  // namespace penstock::plan
