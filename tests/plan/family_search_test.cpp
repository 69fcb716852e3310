#include "plan/family_search.h"

#include <gtest/gtest.h>

#include "plan/policies.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"

namespace penstock::plan {
namespace {

constexpr int kPlans = 300;

struct Searched {
  double before_seconds = 0, after_seconds = 0;
  int plans = 0;
};

/// From a trial that drops nothing, on a slow tier; `one_family`: as if all tensors and ops were slices of
/// one.
Searched search(std::uint64_t seed, bool one_family) {
  RandomStep step = random_step(seed, {static_cast<int>(8 + seed % 8), 16384, true});
  if (one_family) {
    for (std::size_t i = 0; i < step.graph.ops.size(); ++i)
      step.graph.ops[i].name = ir::Name("op.", static_cast<std::int32_t>(i));
    for (std::size_t i = 0; i < step.graph.tensors.size(); ++i)
      step.graph.tensors[i].name = ir::Name("value.", static_cast<std::int32_t>(i));
  }
  Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kNoLimit, 256));
  problem.budget_bytes = (smallest_bytes(problem) + keep_bytes(problem)) / 2;
  const Profile profile = random_profile(problem, seed, 3e6);
  PlanContest contest(problem, profile, kPlans);
  Recomputer recomputer(problem);
  Trials trials(problem, profile, contest, recomputer);
  const LongVector<Droppable> droppable = find_droppable(problem, profile, recomputer);
  Trial trial = trials.fresh();
  trials.run(trial);
  Searched result{trial.seconds, 0, 0};
  FamilySearch(trials, droppable).search(trial);
  result.after_seconds = trial.seconds;
  result.plans = kPlans - contest.plans_left();
  // What it reports is what the contest has.
  EXPECT_DOUBLE_EQ(contest.best_seconds(), trial.seconds) << "seed " << seed;
  return result;
}

TEST(FamilySearch, FindsWhatIsBetterMadeAnewThanMoved) {
  int gained = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Searched found = search(seed, false);
    EXPECT_LE(found.after_seconds, found.before_seconds) << "seed " << seed;
    gained += found.after_seconds < 0.9 * found.before_seconds ? 1 : 0;
  }
  EXPECT_GT(gained, 20);
}

/// All slices of a tensor change together: where everything is of one family, there is next to nothing to
/// try.
TEST(FamilySearch, TriesFamiliesAndNotSlices) {
  int whole = 0, single = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    single += search(seed, false).plans;
    whole += search(seed, true).plans;
  }
  EXPECT_LT(whole, single / 2);
}

}  // namespace
}  // namespace penstock::plan
