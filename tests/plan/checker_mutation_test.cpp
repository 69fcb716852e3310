#include <gtest/gtest.h>

#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/damage.h"
#include "plan/make_plan.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"
#include "plan/symbolic_run.h"

namespace penstock::plan {
namespace {

constexpr int kSteps = 3;

/// A random step whose ops have two kernels each, and of which some talk to other ranks, some write over what
/// they read.
struct DamagedStep {
  RandomStep step;
  Problem problem;
  Profile profile;

  explicit DamagedStep(std::uint64_t seed) {
    const bool overwriting = seed % 3 == 0;
    step = random_step(seed, {static_cast<int>(1 + seed % 5), 8192, true, overwriting, seed % 4 == 1});
    LongVector<LongVector<std::int64_t>> scratch;
    for (const std::int64_t bytes : step.scratch_bytes) scratch.push_back({bytes, bytes / 2});
    problem = make_problem(step.graph, VariantScratch(scratch), grain_rule(std::int64_t{1} << 40, 256));
    // A pool that does not move memory has no overwriting.
    problem.remaps = seed % 2 == 0 || overwriting;
    if (overwriting) allow_overwrites(problem);
    // Some kernels cannot.
    if (seed % 6 == 0) {
      for (std::size_t i = 0; i < problem.ops.size(); i += 2) problem.ops.set_overwrites(i, {});
    }
    profile = random_profile(problem, seed, seed % 2 == 0 ? 1e8 : 1e7);
    OpSeconds seconds;
    for (std::size_t op = 0; op < problem.ops.size(); ++op) {
      const double first = profile.op_seconds.at(op, 0);
      seconds.push_back({first, 1.1 * first});
    }
    profile.op_seconds = seconds;
  }

  /// Of all policies, at several budgets; `use` gets the plan with the problem at its budget.
  template <typename Use>
  void for_each_plan(std::uint64_t seed, const Use& use) {
    const std::int64_t smallest = smallest_bytes(problem), in_memory = keep_bytes(problem);
    for (const PolicyKind policy : all_policies()) {
      for (const int part : {1, 4, 8}) {
        problem.budget_bytes = smallest + (in_memory - smallest) * part / 8;
        PlanOptions options;
        options.policy = policy;
        options.profile = &profile;
        options.dynamic_kernels = seed % 5 == 0;
        try {
          use(make_plan(problem, options), part);
        } catch (const BudgetError&) {
          continue;
        }
      }
    }
  }
};

TEST(CheckerMutation, DamagedPlansAreRejectedOrRight) {
  int rejected = 0, harmless = 0, plans = 0;
  std::int64_t adopts = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    DamagedStep damaged(seed);
    const Problem& problem = damaged.problem;
    damaged.for_each_plan(seed, [&](const Plan& plan, int part) {
      ++plans;
      adopts += count(plan, Action::adopt);
      ASSERT_EQ(SymbolicRun(problem, plan).run(kSteps), "") << plan.policy << " seed " << seed;
      Dice dice(100 * seed + static_cast<std::uint64_t>(part));
      for (int round = 0; round < 150; ++round) {
        Plan mutant = plan;
        const std::string what = Damage(problem, mutant, dice).any();
        if (!check(problem, mutant).ok) {
          ++rejected;
          continue;
        }
        ++harmless;
        EXPECT_EQ(SymbolicRun(problem, mutant).run(kSteps), "")
            << plan.policy << " seed " << seed << " part " << part << ": " << what;
      }
    });
  }
  EXPECT_GT(plans, 200);
  EXPECT_GT(adopts, 20);
  EXPECT_GT(rejected, 10000);
  EXPECT_GT(harmless, 1000);
}

/// The interpreter sees each kind of damage that only few plans show: otherwise the test above could not fail
/// for it.
TEST(SymbolicRun, SeesOtherKernelsExchangesAndAdoptedInputs) {
  int kernels = 0, exchanges = 0, adopted = 0, elsewhere = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    DamagedStep damaged(seed);
    damaged.for_each_plan(seed, [&](const Plan& plan, int part) {
      Dice dice(100 * seed + static_cast<std::uint64_t>(part));
      for (int round = 0; round < 10; ++round) {
        const auto is_seen = [&](std::string (Damage::*damage)(), const std::string& what) {
          Plan mutant = plan;
          // What a plan does not have cannot be damaged.
          const bool is_it = (Damage(damaged.problem, mutant, dice).*damage)().starts_with(what);
          return is_it && !SymbolicRun(damaged.problem, mutant).run(kSteps).empty() ? 1 : 0;
        };
        kernels += is_seen(&Damage::other_variant, "another kernel");
        exchanges += is_seen(&Damage::other_exchange, "an exchange");
        adopted += is_seen(&Damage::brought_back, "an input");
        elsewhere += is_seen(&Damage::brought_back_elsewhere, "an input");
      }
    });
  }
  EXPECT_GT(kernels, 20);
  EXPECT_GT(exchanges, 50);
  EXPECT_GT(adopted, 50);
  EXPECT_GT(elsewhere, 50);
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
