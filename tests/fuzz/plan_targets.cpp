#include "fuzz/targets.h"
#include "plan/checker.h"
#include "plan/json.h"
#include "plan/make_plan.h"
#include "plan/profile.h"
#include "plan/random_step.h"
#include "plan/simulator.h"

namespace penstock::fuzz {
namespace {

struct Subject {
  plan::RandomStep step = plan::random_step(11, {2, 64, true, false});
  plan::Problem problem =
      plan::make_problem(step.graph, step.scratch_bytes, plan::grain_rule(std::int64_t{1} << 40, 256));
  plan::Plan plan;
  Subject() {
    problem.budget_bytes = (plan::smallest_bytes(problem) + plan::keep_bytes(problem)) / 2;
    plan = plan::make_plan(problem, {});
  }
};

Subject& subject() {
  static Subject made;
  return made;
}

}  // namespace

void read_plan(const std::string& input) {
  const plan::Plan plan = plan::plan_from_json(subject().problem, input, "plan");
  plan::check(subject().problem, plan);
}

void read_profile(const std::string& input) {
  const plan::Profile profile = plan::profile_from_json(input, "profile");
  if (profile.op_seconds.size() != subject().problem.ops.size()) return;
  for (std::size_t i = 0; i < profile.op_seconds.size(); ++i) {
    if (profile.op_seconds[i].size() != 1) return;
  }
  plan::simulate(subject().problem, subject().plan, profile);
}

}  // namespace penstock::fuzz
