#include <gtest/gtest.h>

#include "plan/checker.h"
#include "plan/link_lane.h"
#include "plan/policies.h"
#include "plan/random_step.h"
#include "plan/reruns.h"
#include "plan/simulator.h"

namespace penstock::plan {
namespace {

/// data -> x; g: x -> dp; start: dp -> bucket, in dp's storage; more: x -> y; wait: bucket -> mean; u: p,
/// mean -> p'
struct Exchanged {
  ir::Graph graph;
  ir::TensorId x, dp, bucket, y, mean, p, updated;
  enum Op : ir::OpId { data, g, start, more, wait, u };

  Exchanged() {
    x = graph.add_tensor("x", ir::DType::f32, {256}, ir::Role::input);
    dp = graph.add_tensor("dp", ir::DType::f32, {1000}, ir::Role::gradient);
    bucket = graph.add_successor(dp, "bucket");
    graph.tensor(bucket).pinned = true;
    y = graph.add_tensor("y", ir::DType::f32, {64}, ir::Role::activation);
    mean = graph.add_successor(dp, "mean");
    p = graph.add_state("p", {1000}, ir::Role::parameter, {});
    updated = graph.add_successor(p, "p'");
    graph.replace_carried(p, updated);
    const ir::ExchangeAttrs exchange{7, ir::ExchangeKind::all_reduce, 0, 4, {}, {}};
    graph.add_op({ir::OpKind::input, {}, "data", {}, {x}, {}});
    graph.add_op({ir::OpKind::conv, {}, "g", {x}, {dp}, {}});
    graph.add_op({ir::OpKind::reduce_start, {}, "start", {dp}, {bucket}, exchange});
    graph.add_op({ir::OpKind::conv, {}, "more", {x}, {y}, {}});
    graph.add_op({ir::OpKind::reduce_wait, {}, "wait", {bucket}, {mean}, exchange});
    graph.add_op({ir::OpKind::sgd_update, {}, "u", {p, mean}, {updated}, {}});
  }

  Problem problem() const { return make_problem(graph, {}, grain_rule(kPlenty, 64)); }
  ir::StorageId storage(ir::TensorId t) const { return graph.tensor(t).storage; }
};

Plan with(const Plan& plan, ir::OpId before, const LongVector<Instruction>& more) {
  Plan longer = plan;
  const auto at =
      std::find(longer.instructions.begin(), longer.instructions.end(), Instruction{Action::run, before});
  longer.instructions.insert(at, more.begin(), more.end());
  return longer;
}

TEST(Link, WhatIsOnItsWayStaysAndGoesOnce) {
  const Exchanged step;
  const Problem problem = step.problem();
  EXPECT_FALSE(problem.storage(step.storage(step.bucket)).swappable);
  EXPECT_TRUE(problem.storage(step.storage(step.p)).swappable);
  const Plan plan = plan_keep(problem);
  ASSERT_TRUE(check(problem, plan).ok) << check(problem, plan).message;

  const ir::StorageId bucket = step.storage(step.bucket);
  const CheckResult swapped = check(problem, with(plan, Exchanged::more, {{Action::swap_out, bucket}}));
  EXPECT_NE(swapped.message.find("cannot be on the tier"), std::string::npos) << swapped.message;
  const CheckResult released =
      check(problem, with(plan, Exchanged::more, {{Action::release, bucket}, {Action::acquire, bucket}}));
  EXPECT_NE(released.message.find("'bucket' is not in memory"), std::string::npos) << released.message;
  const CheckResult again = check(problem, with(plan, Exchanged::more,
                                                {{Action::release, bucket},
                                                 {Action::acquire, bucket},
                                                 {Action::run, Exchanged::g},
                                                 {Action::run, Exchanged::start}}));
  EXPECT_NE(again.message.find("talk to the other ranks again"), std::string::npos) << again.message;

  Recomputer recomputer(problem);
  const auto& accesses = problem.storage(bucket).accesses;
  for (std::size_t k = 0; k + 1 < accesses.size(); ++k) {
    const LongVector<ir::OpId> chain = recomputer.chain(bucket, k);
    for (const ir::OpId op : chain) EXPECT_EQ(op, Exchanged::g);
  }
}

TEST(Link, ExchangesKeepTheirOrder) {
  const RandomStep step = random_step(3, {4, 1024, true, false, true});
  const Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kPlenty, 64));
  const Plan plan = plan_keep(problem);
  ASSERT_TRUE(check(problem, plan).ok) << check(problem, plan).message;
  LongVector<std::size_t> waits;
  for (std::size_t i = 0; i < plan.instructions.size(); ++i) {
    const Instruction& in = plan.instructions[i];
    if (in.action == Action::run && ir::is_exchange_wait(step.graph.op(in.id).kind)) waits.push_back(i);
  }
  ASSERT_GE(waits.size(), 2U);
  // An update, the release of its gradient, and then the next wait.
  Plan early = plan;
  std::rotate(early.instructions.begin() + static_cast<std::ptrdiff_t>(waits[0]),
              early.instructions.begin() + static_cast<std::ptrdiff_t>(waits[1]),
              early.instructions.begin() + static_cast<std::ptrdiff_t>(waits[1]) + 1);
  const CheckResult result = check(problem, early);
  EXPECT_EQ(result.instruction, waits[0]);
  EXPECT_NE(result.message.find("it is the turn of 'layer"), std::string::npos) << result.message;
}

TEST(Link, ExchangesTakeTimeBesideCompute) {
  const Exchanged step;
  const Problem problem = step.problem();
  const Plan plan = plan_keep(problem);
  Profile profile;
  profile.op_seconds = {{1}, {2}, {0.5}, {4}, {0.25}, {1}};
  profile.link = {4, 1000, 0.5, 0};
  // 4000 bytes, three quarters of it sent twice.
  EXPECT_DOUBLE_EQ(profile.link.seconds(ir::ExchangeKind::all_reduce, 4000), 6.5);
  EXPECT_DOUBLE_EQ(profile.link.seconds(ir::ExchangeKind::all_gather, 4000), 3.5);
  const Simulation exposed = simulate(problem, plan, profile, true);
  EXPECT_DOUBLE_EQ(exposed.step_seconds, 1 + 2 + 0.5 + 6.5 + 0.25 + 1);
  EXPECT_DOUBLE_EQ(exposed.link_stall_seconds, 2.5);
  EXPECT_DOUBLE_EQ(exposed.stall_seconds, 2.5);
  ASSERT_EQ(exposed.link.size(), 1U);
  EXPECT_DOUBLE_EQ(exposed.link[0].start_seconds, 3.5);
  EXPECT_DOUBLE_EQ(exposed.link[0].end_seconds, 10);

  profile.link.bandwidth = 2000;
  const Simulation hidden = simulate(problem, plan, profile);
  EXPECT_DOUBLE_EQ(hidden.link_stall_seconds, 0);
  EXPECT_DOUBLE_EQ(hidden.link_seconds, 3.5);
  EXPECT_DOUBLE_EQ(hidden.step_seconds, 8.75);
}

TEST(Link, OneExchangeFollowsTheOther) {
  Exchanged step;
  const ir::TensorId other = step.graph.add_tensor("other", ir::DType::f32, {1000}, ir::Role::gradient);
  const ir::OpId second =
      step.graph.add_op({ir::OpKind::gather_start,
                         {},
                         "second",
                         {},
                         {other},
                         ir::ExchangeAttrs{8, ir::ExchangeKind::all_gather, 0, 4, {}, {}}});
  LinkLane lane(step.graph, {4, 1000, 0, 0});
  EXPECT_EQ(lane.ready_seconds(Exchanged::wait), 0);
  EXPECT_FALSE(lane.start(Exchanged::more, 1).has_value());
  EXPECT_DOUBLE_EQ(lane.start(Exchanged::start, 1)->end_seconds, 7);
  const auto behind = lane.start(second, 2);
  EXPECT_DOUBLE_EQ(behind->start_seconds, 7);
  EXPECT_DOUBLE_EQ(behind->end_seconds, 10);
  EXPECT_DOUBLE_EQ(lane.ready_seconds(Exchanged::wait), 7);
}

}  // namespace
}  // namespace penstock::plan
