#include <gtest/gtest.h>

#include <algorithm>

#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/make_plan.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"
#include "plan/symbolic_run.h"

namespace penstock::plan {
namespace {

constexpr int kSteps = 3;

/// One thing done to a plan, as words.
std::string damage(Plan& plan, Dice& dice) {
  auto& list = plan.instructions;
  const auto place = [&] {
    return static_cast<std::size_t>(dice.below(static_cast<std::int64_t>(list.size())));
  };
  const std::size_t i = place(), j = place();
  if (list[i].action == Action::adopt && dice.one_in(2)) {
    list[i].from = dice.one_in(2) ? list[j].id : list[j].from;
    return "another storage is taken over at " + std::to_string(i);
  }
  switch (dice.below(plan.boundary.empty() ? 4 : 5)) {
    case 0:
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      return "without " + std::to_string(i);
    case 1:
      std::swap(list[i], list[j]);
      return std::to_string(i) + " and " + std::to_string(j) + " exchanged";
    case 2: {
      const std::size_t next = std::min(i + 1, list.size() - 1);
      std::swap(list[i], list[next]);
      return std::to_string(i) + " after its next";
    }
    case 3: {
      const Instruction moved = list[i];
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(std::min(j, list.size())), moved);
      return std::to_string(i) + " moved to " + std::to_string(j);
    }
    default: {
      Standing& changed = plan.boundary[static_cast<std::size_t>(
          dice.below(static_cast<std::int64_t>(plan.boundary.size())))];
      changed.resident ^= dice.one_in(2);
      changed.on_tier ^= dice.one_in(2);
      changed.pending = static_cast<Transfer>(dice.below(3));
      return "the place of storage " + std::to_string(changed.storage);
    }
  }
}

TEST(CheckerMutation, DamagedPlansAreRejectedOrRight) {
  int rejected = 0, harmless = 0, plans = 0;
  std::int64_t adopts = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const bool overwriting = seed % 3 == 0;
    const RandomStep step = random_step(seed, {static_cast<int>(1 + seed % 5), 8192, true, overwriting});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(std::int64_t{1} << 40, 256));
    if (overwriting) allow_overwrites(problem);
    const Profile profile = random_profile(problem, seed, seed % 2 == 0 ? 1e8 : 1e7);
    const std::int64_t smallest = smallest_bytes(problem), in_memory = keep_bytes(problem);
    for (const PolicyKind policy : all_policies()) {
      for (const int part : {1, 4, 8}) {
        problem.budget_bytes = smallest + (in_memory - smallest) * part / 8;
        PlanOptions options;
        options.policy = policy;
        options.profile = &profile;
        Plan plan;
        try {
          plan = make_plan(problem, options);
        } catch (const BudgetError&) {
          continue;
        }
        ++plans;
        adopts += count(plan, Action::adopt);
        ASSERT_EQ(SymbolicRun(problem, plan).run(kSteps), "") << plan.policy << " seed " << seed;
        Dice dice(100 * seed + static_cast<std::uint64_t>(part));
        for (int round = 0; round < 150; ++round) {
          Plan mutant = plan;
          const std::string what = damage(mutant, dice);
          if (!check(problem, mutant).ok) {
            ++rejected;
            continue;
          }
          ++harmless;
          EXPECT_EQ(SymbolicRun(problem, mutant).run(kSteps), "")
              << plan.policy << " seed " << seed << " part " << part << ": " << what;
        }
      }
    }
  }
  EXPECT_GT(plans, 200);
  EXPECT_GT(adopts, 20);
  EXPECT_GT(rejected, 10000);
  EXPECT_GT(harmless, 1000);
}

/// The other side: the interpreter does see damage, where nobody checked before.
TEST(SymbolicRun, SeesMostDamage) {
  int wrong = 0, all = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const RandomStep step = random_step(seed, {4, 8192, true});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(std::int64_t{1} << 40, 256));
    problem.budget_bytes = (smallest_bytes(problem) + keep_bytes(problem)) / 2;
    const Plan plan = make_plan(problem, {});
    for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
      Plan mutant = plan;
      mutant.instructions.erase(mutant.instructions.begin() + static_cast<std::ptrdiff_t>(i));
      ++all;
      wrong += SymbolicRun(problem, mutant).run(kSteps).empty() ? 0 : 1;
    }
  }
  EXPECT_GT(wrong, all * 9 / 10);
}

}  // namespace
}  // namespace penstock::plan
