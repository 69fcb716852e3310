#include "plan/policies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/make_plan.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"

namespace penstock::plan {
namespace {
constexpr std::int64_t kGrain = 256;

using Policy = std::function<Plan(const Problem&)>;

Problem problem_of(const RandomStep& step, std::int64_t budget_bytes = kPlenty) {
  return make_problem(step.graph, step.scratch_bytes, grain_rule(budget_bytes, kGrain));
}

/// Small storages cannot be swapped and weigh nothing, as in a virtual pool.
PoolRule rule_with_small(std::int64_t budget_bytes) {
  PoolRule rule = grain_rule(budget_bytes, kGrain);
  rule.footprint_bytes = [](std::int64_t size) {
    return size <= 4096 ? 0 : (size + kGrain - 1) / kGrain * kGrain;
  };
  rule.swappable = [](ir::StorageId, std::int64_t size) { return size > 4096; };
  return rule;
}

RandomStepOptions sized(std::uint64_t seed) {
  RandomStepOptions options;
  options.layers = static_cast<int>(1 + seed % 17);
  return options;
}

TEST(Window, PlansFromTheSmallestBudgetToPlenty) {
  std::int64_t swapping = 0, kept = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const RandomStep step = random_step(seed, sized(seed));
    Problem problem = seed % 2 == 0 ? problem_of(step)
                                    : make_problem(step.graph, step.scratch_bytes, rule_with_small(kPlenty));
    const std::int64_t smallest = smallest_bytes(problem), in_memory = keep_bytes(problem);
    for (int part = 0; part <= 10; ++part) {
      problem.budget_bytes = smallest + (in_memory - smallest) * part / 8;
      Plan plan = plan_window(problem);
      const CheckResult result = check(problem, plan);
      ASSERT_TRUE(result.ok) << "seed " << seed << " part " << part << ": " << result.message;
      if (result.summary.swapped_in_bytes > 0) ++swapping;
      if (part == 10 && result.summary.swapped_in_bytes == 0 && result.summary.swapped_out_bytes == 0) ++kept;
    }
    problem.budget_bytes = smallest - 1;
    EXPECT_THROW(plan_window(problem), BudgetError);
  }
  EXPECT_GT(swapping, 600);
  EXPECT_GT(kept, 100);
}

TEST(Window, PassesAnyWindowSize) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const RandomStep step = random_step(seed, sized(seed));
    Problem problem = problem_of(step);
    problem.budget_bytes = (smallest_bytes(problem) + keep_bytes(problem)) / 2;
    for (const std::int64_t window :
         {std::int64_t{1}, problem.budget_bytes / 4, problem.budget_bytes, 100 * problem.budget_bytes}) {
      const CheckResult result = check(problem, plan_window(problem, {window}));
      ASSERT_TRUE(result.ok) << "seed " << seed << " window " << window << ": " << result.message;
    }
  }
}

TEST(Window, PrefetchesAcrossTheBoundary) {
  int crossing = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const RandomStep step = random_step(seed, sized(seed));
    Problem problem = problem_of(step);
    problem.budget_bytes = smallest_bytes(problem) + (keep_bytes(problem) - smallest_bytes(problem)) / 4;
    const Plan plan = plan_window(problem);
    for (const Standing& standing : plan.boundary) crossing += standing.pending == Transfer::read ? 1 : 0;
  }
  EXPECT_GT(crossing, 20);
}

TEST(Lms, FitsAndSwaps) {
  std::int64_t swapping = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const RandomStep step = random_step(seed, sized(seed));
    Problem problem = problem_of(step);
    const std::int64_t smallest = smallest_bytes(problem), in_memory = keep_bytes(problem);
    for (int part = 0; part <= 8; ++part) {
      problem.budget_bytes = smallest + (in_memory - smallest) * part / 8;
      try {
        const CheckResult result = check(problem, plan_lms(problem));
        ASSERT_TRUE(result.ok) << "seed " << seed << " part " << part << ": " << result.message;
        if (result.summary.swapped_in_bytes > 0) ++swapping;
      } catch (const BudgetError& error) {
        ++refused;
        ASSERT_LT(part, 8);
        problem.budget_bytes = error.needed_bytes();
        EXPECT_TRUE(check(problem, plan_lms(problem)).ok);
      }
    }
  }
  EXPECT_GT(swapping, 50);
  EXPECT_GT(refused, 50);
}

TEST(Lms, TakesGivenKnobs) {
  const RandomStep step = random_step(5, {20, 8192, true});
  const Problem problem = problem_of(step);
  EXPECT_EQ(tune_lms(problem).threshold, static_cast<std::int64_t>(step.graph.ops.size()));
  std::int64_t last_bytes = 0;
  for (const std::int64_t threshold : {40, 20, 10, 5, 2}) {
    const CheckResult result = check(problem, plan_lms(problem, {threshold, 2, 3}));
    ASSERT_TRUE(result.ok) << result.message;
    EXPECT_GE(result.summary.swapped_out_bytes, last_bytes);
    last_bytes = result.summary.swapped_out_bytes;
  }
}

/// Steps over budgets from below what the policy needs to plenty: it plans from what it says it needs on.
template <typename Use>
void for_each_budget(PolicyKind policy, const Use& use) {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    const RandomStep step = random_step(seed, sized(seed));
    Problem problem = seed % 2 == 0 ? problem_of(step)
                                    : make_problem(step.graph, step.scratch_bytes, rule_with_small(kPlenty));
    const Profile profile = random_profile(problem, seed, seed % 3 == 0 ? 1e8 : 1e7);
    PlanOptions options;
    options.policy = policy;
    options.profile = &profile;
    const std::int64_t smallest = smallest_budget(problem, options), in_memory = keep_bytes(problem);
    problem.budget_bytes = smallest - 1;
    EXPECT_THROW(make_plan(problem, options), BudgetError);
    for (int part = 0; part <= 5; ++part) {
      problem.budget_bytes = smallest + (in_memory - smallest) * part / 5;
      use(problem, profile, make_plan(problem, options), part);
    }
  }
}

bool is_state_resident(const Plan& plan) {
  return std::all_of(plan.boundary.begin(), plan.boundary.end(), [](const Standing& standing) {
    return standing.resident && standing.pending == Transfer::none;
  });
}

/// State stays; values are swapped under some budgets and made again under some. Where all fits, nothing
/// moves and nothing is computed twice.
void expect_swaps_and_recomputes(PolicyKind policy) {
  int swapping = 0, recomputing = 0;
  for_each_budget(policy, [&](const Problem&, const Profile&, const Plan& plan, int part) {
    EXPECT_TRUE(is_state_resident(plan));
    swapping += plan.summary.swapped_in_bytes > 0 ? 1 : 0;
    recomputing += plan.summary.recomputed > 0 ? 1 : 0;
    if (part == 5) {
      EXPECT_EQ(plan.summary.swapped_out_bytes + plan.summary.swapped_in_bytes + plan.summary.recomputed, 0);
    }
  });
  EXPECT_GT(swapping, 50);
  EXPECT_GT(recomputing, 50);
}

TEST(SuperNeurons, CachesAndRecomputes) {
  expect_swaps_and_recomputes(PolicyKind::superneurons);
}

TEST(Pooch, KeepsSwapsAndRecomputes) {
  expect_swaps_and_recomputes(PolicyKind::pooch);
}

/// A forward-only graph over the same state, which must leave all state as the training plan expects it.
TEST(GivenBoundary, EvaluationReturnsToTheTrainingPlansBoundary) {
  int swapped = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RandomStep train = random_step(seed, sized(seed));
    Problem problem = problem_of(train);
    problem.budget_bytes = smallest_bytes(problem) + (keep_bytes(problem) - smallest_bytes(problem)) / 10;
    const Plan training = plan_window(problem);
    // Reads each parameter, leaves momenta alone; its own storages lie behind those of the training graph.
    RandomStep eval;
    std::vector<std::int64_t> bytes;
    for (const StorageInfo& storage : problem.storages) bytes.push_back(storage.size_bytes);
    eval.graph.storages = train.graph.storages;
    ir::TensorId last = eval.graph.add_tensor("x", ir::DType::f32, {64}, ir::Role::input);
    const auto add = [&](ir::OpKind kind, std::vector<ir::TensorId> in, std::vector<ir::TensorId> out) {
      ir::Op op;
      op.kind = kind;
      op.name = "op" + std::to_string(eval.graph.ops.size());
      op.inputs = std::move(in);
      op.outputs = std::move(out);
      eval.graph.add_op(std::move(op));
    };
    add(ir::OpKind::input, {}, {last});
    for (const ir::Carried& state : train.graph.carried) {
      const ir::Tensor& tensor = train.graph.tensor(state.begin);
      if (tensor.role == ir::Role::optimizer_state) continue;
      const ir::StorageId own = eval.graph.storages;
      const ir::TensorId weight = eval.graph.add_state(tensor.name, tensor.shape, tensor.role, {});
      eval.graph.tensor(weight).storage = tensor.storage;
      eval.graph.storages = own;
      const ir::TensorId next = eval.graph.add_tensor("y", ir::DType::f32, {64}, ir::Role::activation);
      add(ir::OpKind::conv, {last, weight}, {next});
      last = next;
    }
    bytes.resize(static_cast<std::size_t>(eval.graph.storages), 256);
    const Boundary given = settled(training.boundary);
    const Problem evaluation =
        make_problem(eval.graph, {}, grain_rule(problem.budget_bytes + 1024, kGrain), bytes, given);
    const CheckResult result = check(evaluation, plan_window(evaluation));
    ASSERT_TRUE(result.ok) << "seed " << seed << ": " << result.message;
    swapped += result.summary.swapped_in_bytes > 0 ? 1 : 0;
    Problem roomy = evaluation;
    roomy.budget_bytes = kPlenty;
    const CheckResult kept = check(roomy, plan_keep(roomy));
    ASSERT_TRUE(kept.ok) << kept.message;
    const CheckResult lms = check(roomy, plan_lms(roomy));
    ASSERT_TRUE(lms.ok) << lms.message;
  }
  EXPECT_GT(swapped, 20);
}

}  // namespace
}  // namespace penstock::plan
