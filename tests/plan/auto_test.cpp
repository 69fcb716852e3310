#include "plan/auto.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/evictions.h"
#include "plan/make_plan.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"
#include "plan/reruns.h"
#include "plan/timed_walk.h"

namespace penstock::plan {
namespace {

TEST(TimedWalk, AnySwapSetGivesASoundPlan) {
  int made = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const RandomStep step = random_step(seed, {static_cast<int>(1 + seed % 12), 8192, true});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kPlenty, 256));
    const Profile profile = random_profile(problem, seed, 1e8);
    Dice dice(seed);
    const std::int64_t smallest = smallest_bytes(problem), in_memory = keep_bytes(problem);
    for (int round = 0; round < 8; ++round) {
      problem.budget_bytes = smallest + (in_memory - smallest) * round / 8;
      SwapSet swaps(problem);
      for (std::size_t s = 0; s < problem.storages.size(); ++s) {
        for (std::size_t k = 0; k < problem.storages[s].accesses.size(); ++k) {
          if (is_needed_after(problem.storages[s], k))
            swaps.set(static_cast<ir::StorageId>(s), k, round == 0 || dice.below(4) != 0);
        }
      }
      const Step in_order(problem);
      TimedWalk open(in_order, profile, swaps);
      if (!open.walk()) {
        EXPECT_NE(round, 0) << "everything that can be swapped is";
        continue;
      }
      TimedWalk closed(in_order, profile, swaps, open.end());
      ASSERT_TRUE(closed.walk());
      const CheckResult result = check(problem, closed.finish("test"));
      ASSERT_TRUE(result.ok) << "seed " << seed << " round " << round << ": " << result.message;
      ++made;
    }
  }
  EXPECT_GT(made, 300);
}

TEST(Recomputer, AnySetOfDroppedValuesIsMadeAnew) {
  int rerun = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const RandomStep step = random_step(seed, {static_cast<int>(1 + seed % 12), 8192, true});
    const Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kPlenty, 256));
    Recomputer recomputer(problem);
    Dice dice(seed);
    for (int round = 0; round < 8; ++round) {
      SwapSet dropped(problem);
      for (std::size_t s = 0; s < problem.storages.size(); ++s) {
        for (std::size_t k = 0; k < problem.storages[s].accesses.size(); ++k) {
          dropped.set(static_cast<ir::StorageId>(s), k, round == 0 || dice.below(3) == 0);
        }
      }
      const LongVector<Rerun> reruns = recomputer.reruns(dropped);
      const CheckResult result = check(problem, plan_keep(Step(problem, reruns)));
      ASSERT_TRUE(result.ok) << "seed " << seed << " round " << round << ": " << result.message;
      EXPECT_EQ(result.summary.recomputed, static_cast<std::int64_t>(reruns.size()));
      rerun += static_cast<int>(reruns.size());
    }
  }
  EXPECT_GT(rerun, 1000);
}

TEST(Recomputer, OpsWriteOverWhatIsMadeAnew) {
  std::int64_t adopts = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const RandomStep step = random_step(seed, {static_cast<int>(1 + seed % 12), 8192, true, true});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kPlenty, 256));
    allow_overwrites(problem);
    const Profile profile = random_profile(problem, seed, 1e8);
    Recomputer recomputer(problem);
    Dice dice(seed);
    for (int round = 0; round < 8; ++round) {
      SwapSet dropped(problem);
      LongVector<OnTheWay> passing(problem.storages.size(), OnTheWay::by_rule);
      for (std::size_t s = 0; s < problem.storages.size(); ++s) {
        passing[s] = dice.one_in(2) ? OnTheWay::passes : OnTheWay::held;
        for (std::size_t k = 0; k < problem.storages[s].accesses.size(); ++k) {
          dropped.set(static_cast<ir::StorageId>(s), k, round == 0 || dice.below(3) == 0);
        }
      }
      const LongVector<Rerun> reruns = recomputer.reruns(dropped, &passing);
      const Step without(problem, reruns), longer(problem, reruns, true);
      SwapSet swaps(longer);
      for (std::size_t s = 0; s < longer.storages(); ++s) {
        const StorageUses storage = longer.storage(static_cast<ir::StorageId>(s));
        for (std::size_t k = 0; k < storage.accesses.size(); ++k) {
          if (is_needed_after(storage, k))
            swaps.set(static_cast<ir::StorageId>(s), k, dice.one_in(3) ? 1 : 0);
        }
      }
      // As much as the set needs, and not a byte more.
      const LongVector<std::int64_t> memory = base_memory(longer, swaps);
      problem.budget_bytes = *std::max_element(memory.begin(), memory.end());
      const LongVector<std::int64_t> more = base_memory(without, swaps);
      EXPECT_GE(*std::max_element(more.begin(), more.end()), problem.budget_bytes);
      TimedWalk open(longer, profile, swaps);
      ASSERT_TRUE(open.walk());
      TimedWalk closed(longer, profile, swaps, open.end());
      if (!closed.walk()) continue;  // transfers that cross the boundary have memory there
      const Plan plan = closed.finish("test");
      const CheckResult result = check(problem, plan);
      ASSERT_TRUE(result.ok) << "seed " << seed << " round " << round << ": " << result.message;
      adopts += count(plan, Action::adopt);
    }
  }
  EXPECT_GT(adopts, 1000);
}

/// Made of a and of what was made of a: a wide chain whose values pass into each other.
TEST(Auto, WritesOverWhatIsMadeAnewWhereTheTierIsSlow) {
  std::int64_t adopts = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RandomStep step = random_step(seed, {10, 8192, true, true});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kPlenty, 256));
    const Profile profile = random_profile(problem, seed, 1e6);
    problem.budget_bytes = smallest_bytes(problem);
    Plan plain = plan_auto(problem, profile, {true, 60});
    prove(problem, plain);
    allow_overwrites(problem);
    Plan plan = plan_auto(problem, profile, {true, 60});
    prove(problem, plan);
    EXPECT_EQ(count(plain, Action::adopt), 0);
    adopts += count(plan, Action::adopt);
  }
  EXPECT_GT(adopts, 20);
}

TEST(Auto, IsNeverWorseThanTheOthers) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const RandomStep step = random_step(seed, {static_cast<int>(2 + seed % 10), 8192, true});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kPlenty, 256));
    const Profile profile = random_profile(problem, seed, 1e8);
    const std::int64_t smallest = smallest_bytes(problem), in_memory = keep_bytes(problem);
    for (int part = 0; part <= 4; ++part) {
      problem.budget_bytes = smallest + (in_memory - smallest) * part / 4;
      Plan plan = plan_auto(problem, profile, {true, 40});
      prove(problem, plan);
      const double seconds = simulate(problem, plan, profile).step_seconds;
      for (const PolicyKind policy : all_policies()) {
        PlanOptions other;
        other.policy = policy;
        other.profile = &profile;
        if (policy == PolicyKind::automatic) continue;
        try {
          const Plan made = make_plan(problem, other);
          EXPECT_LE(seconds, simulate(problem, made, profile).step_seconds * (1 + 1e-9))
              << seed << " " << made.policy;
        } catch (const BudgetError&) {
          continue;
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::plan
