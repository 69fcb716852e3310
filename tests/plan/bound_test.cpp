#include "plan/bound.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plan/auto.h"
#include "plan/budget_error.h"
#include "plan/checker.h"
#include "plan/make_plan.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"
#include "plan/simulator.h"

namespace penstock::plan {
namespace {

TEST(Bound, IsNeverAboveAnyPlan) {
  int by_memory = 0, recomputing = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const bool overwriting = seed % 3 == 0;
    const RandomStep step = random_step(seed, {static_cast<int>(1 + seed % 10), 8192, true, overwriting});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kPlenty, 256));
    if (overwriting) allow_overwrites(problem);
    const std::int64_t smallest = smallest_bytes(problem), in_memory = keep_bytes(problem);
    for (const double bandwidth : {3e6, 1e7, 1e8}) {
      const Profile profile = random_profile(problem, seed, bandwidth);
      for (int part = 0; part <= 4; ++part) {
        problem.budget_bytes = smallest + (in_memory - smallest) * part / 4;
        const Bound bound = lower_bound(problem, profile);
        EXPECT_GE(bound.seconds, bound.compute_seconds);
        by_memory += bound.kind == BoundKind::memory ? 1 : 0;
        // In a pool that does not move memory no plan writes over what it reads, but the bound is for both
        // pools.
        Problem unmoved = problem;
        unmoved.remaps = false;
        EXPECT_EQ(lower_bound(unmoved, profile).seconds, bound.seconds);
        if (overwriting && part == 2) {
          PlanOptions options;
          options.policy = PolicyKind::automatic;
          options.profile = &profile;
          EXPECT_EQ(count(make_plan(unmoved, options), Action::adopt), 0);
        }
        for (const PolicyKind policy : all_policies()) {
          PlanOptions options;
          options.policy = policy;
          options.profile = &profile;
          try {
            Plan plan = policy == PolicyKind::automatic ? plan_auto(problem, profile, {true, 30})
                                                        : make_plan(problem, options);
            prove(problem, plan);
            recomputing += plan.summary.recomputed > 0 ? 1 : 0;
            EXPECT_LE(bound.seconds, simulate(problem, plan, profile).step_seconds * (1 + 1e-6))
                << "seed " << seed << " part " << part << " policy " << plan.policy << ": "
                << bound_text(problem, bound);
          } catch (const BudgetError&) {
            continue;
          }
        }
      }
    }
  }
  EXPECT_GT(by_memory, 200);
  EXPECT_GT(recomputing, 100);
}

/// A graph of few ops, each named by what it makes.
struct Chain {
  ir::Graph graph;

  ir::TensorId add(const char* name, std::int64_t elements, const std::vector<ir::TensorId>& inputs) {
    const bool is_data = inputs.empty();
    const ir::TensorId made =
        graph.add_tensor(name, ir::DType::f32, {elements}, is_data ? ir::Role::input : ir::Role::activation);
    ir::Op op;
    op.kind = is_data ? ir::OpKind::input : ir::OpKind::conv;
    op.name = name;
    op.inputs = inputs;
    op.outputs = {made};
    graph.add_op(std::move(op));
    return made;
  }
  Problem problem(std::int64_t budget_bytes, const std::vector<std::int64_t>& scratch_bytes = {}) const {
    return make_problem(graph, scratch_bytes, grain_rule(budget_bytes, 64));
  }
};

Profile times(std::vector<double> seconds, double bandwidth) {
  Profile profile;
  for (const double s : seconds) profile.op_seconds.push_back({s});
  profile.tier = {bandwidth, bandwidth, bandwidth / 2, bandwidth / 2, 0, true};
  return profile;
}

double simulated(const Problem& problem, const Profile& profile, PolicyKind policy) {
  PlanOptions options;
  options.policy = policy;
  options.profile = &profile;
  return simulate(problem, make_plan(problem, options), profile).step_seconds;
}

TEST(Bound, IsComputeWhereAllFits) {
  Chain chain;
  const ir::TensorId x = chain.add("x", 1024, {});
  chain.add("y", 1024, {x});
  const Problem problem = chain.problem(8192);
  const Profile profile = times({1, 2}, 1e3);
  const Bound bound = lower_bound(problem, profile);
  EXPECT_DOUBLE_EQ(bound.seconds, 3);
  EXPECT_EQ(bound.kind, BoundKind::compute);
  EXPECT_DOUBLE_EQ(simulated(problem, profile, PolicyKind::keep), 3);
  EXPECT_TRUE(std::isinf(lower_bound(chain.problem(8191), profile).seconds));
}

TEST(Bound, IsTightWhereTransfersAreAll) {
  Chain chain;
  const ir::TensorId x = chain.add("x", 1024, {});
  const ir::TensorId y = chain.add("y", 1024, {x});
  const ir::TensorId big = chain.add("big", 4096, {y});
  chain.add("z", 16, {x, big});
  // No batch comes twice: the 4096 bytes of x leave before `big` is made and come back after.
  const Problem problem = chain.problem(4096 + 16384 + 64, {0, 0, 64, 0});
  const Profile profile = times({1e-9, 1e-9, 0.5, 1e-9}, 4096);
  const Bound bound = lower_bound(problem, profile);
  EXPECT_EQ(bound_text(problem, bound), "memory at op 'big'");
  EXPECT_NEAR(bound.seconds, 2.5, 1e-6);
  EXPECT_NEAR(simulated(problem, profile, PolicyKind::automatic), 2.5, 1e-6);
}

TEST(Bound, IsTightWhereRecomputationIsCheaper) {
  Chain chain;
  const ir::TensorId x = chain.add("x", 16, {});
  const ir::TensorId y = chain.add("y", 1024, {x});
  const ir::TensorId s = chain.add("s", 16, {y});
  const ir::TensorId big = chain.add("big", 4096, {s});
  const ir::TensorId t = chain.add("t", 16, {big});
  chain.add("z", 16, {y, t});
  chain.graph.ops[5].phase = ir::Phase::backward;
  // Not beside `big`, but y can be made again from x, and the tier is slow.
  const Problem problem = chain.problem(16384 + 128);
  const Profile profile = times({1, 2, 3, 4, 5, 6}, 1);
  const Bound bound = lower_bound(problem, profile);
  EXPECT_EQ(bound.kind, BoundKind::memory);
  // What does not fit of y: all but what x takes.
  EXPECT_NEAR(bound.seconds, 21 + 2 * 4032.0 / 4096, 0.01);
  EXPECT_NEAR(simulated(problem, profile, PolicyKind::automatic), 23, 1e-6);
}

}  // namespace
}  // namespace penstock::plan
