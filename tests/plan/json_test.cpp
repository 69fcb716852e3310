#include "plan/json.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "plan/checker.h"
#include "plan/make_plan.h"
#include "plan/profile.h"
#include "plan/random_step.h"

namespace penstock::plan {
namespace {

struct Planned {
  RandomStep step = random_step(11);
  Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(std::int64_t{1} << 40, 256));
  Plan plan;
  Planned() {
    problem.budget_bytes = (smallest_bytes(problem) + keep_bytes(problem)) / 2;
    plan = make_plan(problem, {});
  }
};

TEST(PlanJson, ComesBackAsItWas) {
  Planned p;
  p.step.graph.tensors[0].name = "\"<script>\xff";
  const Plan back = plan_from_json(p.problem, plan_to_json(p.problem, p.plan), "plan.json");
  EXPECT_EQ(back.policy, p.plan.policy);
  EXPECT_EQ(back.budget_bytes, p.plan.budget_bytes);
  EXPECT_EQ(back.boundary, p.plan.boundary);
  EXPECT_EQ(back.instructions, p.plan.instructions);
  EXPECT_EQ(back.summary, p.plan.summary);
  EXPECT_TRUE(check(p.problem, back).ok);
  p.plan.instructions = {{Action::adopt, 3, 0, 2}, {Action::run, 1, 0}};
  const Plan adopting = plan_from_json(p.problem, plan_to_json(p.problem, p.plan), "plan.json");
  EXPECT_EQ(adopting.instructions, p.plan.instructions);
}

TEST(PlanJson, RefusesWhatIsNoPlan) {
  const Planned p;
  const std::string text = plan_to_json(p.problem, p.plan);
  EXPECT_THROW(plan_from_json(p.problem, "", "plan.json"), UserError);
  EXPECT_THROW(plan_from_json(p.problem, "[]", "plan.json"), UserError);
  EXPECT_THROW(plan_from_json(p.problem, text.substr(0, text.size() / 2), "plan.json"), UserError);
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  EXPECT_THROW(plan_from_json(p.problem, replaced("\"version\":1", "\"version\":2"), "plan.json"), UserError);
  EXPECT_THROW(plan_from_json(p.problem, replaced("\"acquire\"", "\"grab\""), "plan.json"), UserError);
  EXPECT_THROW(plan_from_json(p.problem, replaced("[\"run\",0", "[\"run\",\"x\""), "plan.json"), UserError);
  EXPECT_THROW(
      plan_from_json(p.problem, replaced("\"graph\":\"random\"", "\"graph\":\"other\""), "plan.json"),
      UserError);
  try {
    plan_from_json(p.problem, "{}", "plan.json");
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("plan.json: not a plan", 0), 0U) << error.what();
  }
}

TEST(ProfileJson, ComesBackAsItWas) {
  Profile profile;
  profile.op_seconds = {{1e-3, 2e-3}, {0.1 + 0.2}};
  profile.tier = {1.5e9, 1e9, 7e8, 6e8, 1e-4, false};
  profile.host = {1e-5, 2e-11, 2.5, 3e-6, 4e-11};
  profile.measured = true;
  const Profile back = profile_from_json(profile_to_json(profile), "profile.json");
  EXPECT_EQ(back.op_seconds, profile.op_seconds);
  EXPECT_EQ(back.tier, profile.tier);
  EXPECT_EQ(back.host, profile.host);
  EXPECT_TRUE(back.measured);
  EXPECT_THROW(profile_from_json("{}", "profile.json"), UserError);
  profile.host.transfer_seconds = -1;
  EXPECT_THROW(profile_from_json(profile_to_json(profile), "profile.json"), UserError);
  profile.host.transfer_seconds = 0;
  profile.tier.read_bandwidth = 0;
  EXPECT_THROW(profile_from_json(profile_to_json(profile), "profile.json"), UserError);
}

TEST(Policies, AreFoundByName) {
  for (const PolicyKind policy : all_policies()) EXPECT_EQ(parse_policy(policy_name(policy)), policy);
  EXPECT_THROW(parse_policy("lsm"), UserError);
}

TEST(PlanJson, RefusesDeepNesting) {
  const Planned p;
  for (const std::string& bracket : {std::string("["), std::string("{\"a\":")}) {
    std::string text;
    for (int i = 0; i < 200'000; ++i) text += bracket;
    for (const auto& read : {std::function<void()>([&] { plan_from_json(p.problem, text, "deep"); }),
                             std::function<void()>([&] { profile_from_json(text, "deep"); })}) {
      try {
        read();
        ADD_FAILURE() << "was read";
      } catch (const UserError& error) {
        EXPECT_NE(std::string(error.what()).find("nested too deeply"), std::string::npos) << error.what();
      }
    }
  }
}

TEST(ProfileJson, RefusesAbsurdNumbers) {
  Profile good;
  good.op_seconds = {{1e-3}, {2e-3, 1e-3}};
  EXPECT_EQ(profile_from_json(profile_to_json(good), "profile").op_seconds, good.op_seconds);
  const auto refused = [&](const std::function<void(Profile&)>& spoil) {
    Profile bad = good;
    spoil(bad);
    EXPECT_THROW(profile_from_json(profile_to_json(bad), "profile"), UserError);
  };
  refused([](Profile& bad) { bad.op_seconds.set(1, 0, 1e300); });
  refused([](Profile& bad) { bad.op_seconds.set(0, 0, -1); });
  refused([](Profile& bad) { bad.tier.latency_seconds = 1e30; });
  refused([](Profile& bad) { bad.tier.latency_seconds = -1e-3; });
  refused([](Profile& bad) { bad.tier.read_bandwidth = 1e-300; });
  refused([](Profile& bad) { bad.tier.write_bandwidth_together = 1e300; });
  refused([](Profile& bad) { bad.host.moves_each = 1e18; });
  refused([](Profile& bad) { bad.host.moved_share = -1; });
  refused([](Profile& bad) { bad.link.message_seconds = 1e9; });
  refused([](Profile& bad) { bad.link.latency_seconds = -1; });
}

}  // namespace
}  // namespace penstock::plan
