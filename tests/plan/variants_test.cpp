#include "plan/variants.h"

#include <gtest/gtest.h>

#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/make_plan.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"
#include "plan/simulator.h"

namespace penstock::plan {
namespace {

/// Each op of a random step in three variants: the default, one that is faster and needs more scratch, one
/// that is slower and needs none.
struct Varied {
  RandomStep step;
  Problem problem;
  Profile profile;

  explicit Varied(std::uint64_t seed)
      : step(random_step(seed, {static_cast<int>(2 + seed % 8), 8192, true})) {
    LongVector<LongVector<std::int64_t>> scratch;
    for (const std::int64_t bytes : step.scratch_bytes) scratch.push_back({bytes, 2 * bytes + 8192, 0});
    problem = make_problem(step.graph, scratch, grain_rule(kPlenty, 256));
    profile = random_profile(problem, seed, 1e8);
    OpSeconds seconds;
    for (std::size_t op = 0; op < problem.ops.size(); ++op) {
      const double first = profile.op_seconds.at(op, 0);
      seconds.push_back({first, first / 2, first * 2});
    }
    profile.op_seconds = seconds;
  }
};

TEST(Variants, TheFastestThatFits) {
  int fast = 0, kept = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Varied v(seed);
    PlanOptions options;
    options.profile = &v.profile;
    for (const PolicyKind policy : {PolicyKind::window, PolicyKind::superneurons, PolicyKind::keep}) {
      options.policy = policy;
      options.dynamic_kernels = false;
      const std::int64_t smallest = smallest_budget(v.problem, options);
      v.problem.budget_bytes = smallest + (keep_bytes(v.problem) - smallest) / 4;
      const Plan fixed = make_plan(v.problem, options);
      options.dynamic_kernels = true;
      const Plan dynamic = make_plan(v.problem, options);
      ASSERT_EQ(fixed.instructions.size(), dynamic.instructions.size());
      LongVector<std::int32_t> variant_of(v.problem.ops.size(), -1);
      for (std::size_t i = 0; i < fixed.instructions.size(); ++i) {
        const Instruction &before = fixed.instructions[i], &after = dynamic.instructions[i];
        EXPECT_EQ(before.action, after.action);
        EXPECT_EQ(before.id, after.id);
        EXPECT_EQ(before.variant, 0);
        if (after.action != Action::run) continue;
        // The slow one never: the default fits. And an op that runs again runs as it did.
        EXPECT_NE(after.variant, 2);
        std::int32_t& known = variant_of[static_cast<std::size_t>(after.id)];
        if (known >= 0) {
          EXPECT_EQ(known, after.variant);
        }
        known = after.variant;
        (after.variant == 1 ? fast : kept) += 1;
        if (after.variant == 1) continue;
        // It would not have fitted: with it somewhere else than here, the plan breaks the budget.
        Plan greedy = dynamic;
        for (Instruction& in : greedy.instructions) {
          if (in.action == Action::run && in.id == after.id) in.variant = 1;
        }
        EXPECT_FALSE(check(v.problem, greedy).ok);
      }
      EXPECT_LE(simulate(v.problem, dynamic, v.profile).compute_seconds,
                simulate(v.problem, fixed, v.profile).compute_seconds);
      v.problem.budget_bytes = kPlenty;
    }
  }
  EXPECT_GT(fast, 300);
  EXPECT_GT(kept, 100);
}

}  // namespace
}  // namespace penstock::plan
