#include <gtest/gtest.h>

#include "plan/estimate.h"
#include "plan/make_plan.h"
#include "plan/simulator.h"
#include "session/program.h"

namespace penstock::session {
namespace {

/// The plans are proved where they are made; what is left to see is that there are any, and that they swap.
TEST(ExchangePlans, EveryPolicyPlansAroundGradientsOnTheirWay) {
  Optimizer optimizer;
  optimizer.momentum = 0.9F;
  ModelOptions model;
  model.batch = 4;
  model.channels = 3;
  model.image_size = 32;
  model.classes = 10;
  for (const bool shard : {false, true}) {
    const lower::ExchangeOptions exchange{0, 3, 256 << 10, 512 << 10, shard};
    ProgramRequest request;
    request.optimizer = &optimizer;
    request.exchange = exchange;
    const Program program = make_program(Network::model("resnet20", model), request);
    const lower::Executable& step = *program.training;
    plan::Problem problem =
        plan::make_problem(step.graph, step.scratch_bytes, plan::grain_rule(std::int64_t{1} << 40, 4096));
    plan::Profile profile = plan::estimate_profile(problem);
    profile.link = {3, 1e8, 1e-4, 0};
    const std::int64_t in_memory = plan::keep_bytes(problem);
    for (const plan::PolicyKind policy : plan::all_policies()) {
      plan::PlanOptions options;
      options.policy = policy;
      options.profile = &profile;
      problem.budget_bytes = in_memory;
      const std::int64_t smallest = plan::smallest_budget(problem, options);
      for (const std::int64_t budget : {smallest, (smallest + in_memory) / 2, in_memory}) {
        problem.budget_bytes = budget;
        const plan::Plan plan = plan::make_plan(problem, options);
        EXPECT_LE(plan.summary.peak_bytes, budget) << plan::policy_name(policy);
        EXPECT_GT(plan::simulate(problem, plan, profile).link_seconds, 0);
      }
    }
  }
}

}  // namespace
}  // namespace penstock::session
