#include "plan/simulator.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/checker.h"
#include "plan/make_plan.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"
#include "plan/tier_lanes.h"

namespace penstock::plan {
namespace {

/// Plans of all policies over several budgets of random steps.
template <typename Use>
void for_each_plan(const Use& use) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const RandomStep step = random_step(seed, {static_cast<int>(2 + seed % 10), 8192, true});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kPlenty, 256));
    const std::int64_t in_memory = keep_bytes(problem);
    for (const PolicyKind policy : all_policies()) {
      if (policy_needs_profile(policy)) continue;
      PlanOptions options;
      options.policy = policy;
      const std::int64_t smallest = smallest_budget(problem, options);
      for (int part = 0; part < 3; ++part) {
        problem.budget_bytes = smallest + (in_memory - smallest) * part / 3;
        use(problem, make_plan(problem, options), seed);
      }
    }
  }
}

TEST(Simulator, IsNeverBelowComputeOrTransfers) {
  int stalled = 0;
  for_each_plan([&](const Problem& problem, const Plan& plan, std::uint64_t seed) {
    const Profile profile = random_profile(problem, seed, 1e8);
    const Simulation simulation = simulate(problem, plan, profile);
    double compute = 0;
    for (std::size_t op = 0; op < profile.op_seconds.size(); ++op) compute += profile.op_seconds.at(op, 0);
    EXPECT_NEAR(simulation.compute_seconds - simulation.recompute_seconds, compute, 1e-9);
    EXPECT_EQ(simulation.recompute_seconds > 0, plan.summary.recomputed > 0);
    EXPECT_GE(simulation.step_seconds, compute - 1e-9);
    EXPECT_GE(simulation.step_seconds * 1.0001,
              static_cast<double>(plan.summary.swapped_in_bytes) / profile.tier.read_bandwidth);
    EXPECT_GE(simulation.step_seconds * 1.0001,
              static_cast<double>(plan.summary.swapped_out_bytes) / profile.tier.write_bandwidth);
    EXPECT_EQ(simulation.peak_bytes, plan.summary.peak_bytes);
    stalled += simulation.stall_seconds > 0.01 * compute ? 1 : 0;
    if (plan.summary.swapped_in_bytes == 0 && plan.summary.swapped_out_bytes == 0) {
      EXPECT_NEAR(simulation.stall_seconds, 0, 1e-9);
    }
  });
  EXPECT_GT(stalled, 50);
}

TEST(Simulator, FasterTiersNeverHurt) {
  for_each_plan([&](const Problem& problem, const Plan& plan, std::uint64_t seed) {
    double last = std::numeric_limits<double>::infinity();
    for (const double bandwidth : {1e7, 3e7, 1e8, 1e9, 1e12}) {
      Profile profile = random_profile(problem, seed, bandwidth);
      // First come, first served: where waiting reorders requests, a faster tier may be asked in another
      // order.
      profile.tier.serves_waiting_first = false;
      profile.tier.latency_seconds = 0;
      const double seconds = simulate(problem, plan, profile).step_seconds;
      EXPECT_LE(seconds, last * 1.001);
      last = seconds;
    }
    const double compute = simulate(problem, plan, random_profile(problem, seed, 1)).compute_seconds;
    EXPECT_NEAR(last, compute, 0.01 * compute);
  });
}

TEST(Simulator, CountsWhatTheHostDoesBetweenOps) {
  for_each_plan([&](const Problem& problem, const Plan& plan, std::uint64_t seed) {
    Profile profile = random_profile(problem, seed, 1e15);
    profile.tier.latency_seconds = 0;
    const double before = simulate(problem, plan, profile).step_seconds;
    profile.host = {.mapping_seconds = 1e-3,
                    .mapping_seconds_per_byte = 1e-9,
                    .moves_each = 3,
                    .moved_share = 0.25,
                    .transfer_seconds = 1e-2,
                    .transfer_seconds_per_byte = 1e-8};
    double host = 0, slowed = 0;
    for (const Instruction& in : plan.instructions) {
      const bool transfers = in.action == Action::swap_in || in.action == Action::swap_out;
      const bool maps = in.action == Action::swap_in || in.action == Action::acquire;
      std::int64_t bytes = maps ? problem.storage(in.id).footprint_bytes : 0;
      if (in.action == Action::run) {
        bytes = problem.op(in.id).scratch_bytes[static_cast<std::size_t>(in.variant)];
      }
      if (bytes > 0) host += 3 * 1e-3 + 0.25 * 1e-9 * static_cast<double>(bytes);
      if (!transfers) continue;
      host += 1e-2;
      slowed += 1e-8 * static_cast<double>(problem.storage(in.id).size_bytes);
    }
    const Simulation simulation = simulate(problem, plan, profile);
    EXPECT_NEAR(simulation.host_seconds, host, 1e-9);
    EXPECT_NEAR(simulation.slowed_seconds, slowed, 1e-9);
    EXPECT_NEAR(simulation.step_seconds, before + host + slowed, 1e-6);
  });
}

TEST(Simulator, TimelineIsConsistent) {
  for_each_plan([&](const Problem& problem, const Plan& plan, std::uint64_t seed) {
    const Simulation simulation = simulate(problem, plan, random_profile(problem, seed, 1e8), true);
    double host = 0, busy = 0, stalled = 0;
    for (const TimelineEvent& event : simulation.timeline) {
      EXPECT_LE(event.start_seconds, event.end_seconds);
      EXPECT_LE(event.end_seconds, simulation.step_seconds + 1e-9);
      if (event.action != Action::run && event.action != Action::wait) continue;
      EXPECT_NEAR(event.start_seconds, host, 1e-9);
      host = event.end_seconds;
      (event.action == Action::run ? busy : stalled) += event.end_seconds - event.start_seconds;
    }
    EXPECT_NEAR(busy, simulation.compute_seconds, 1e-9);
    EXPECT_NEAR(stalled, simulation.stall_seconds, 1e-9);
    std::int64_t peak = 0;
    for (const MemoryPoint& point : simulation.memory) peak = std::max(peak, point.bytes);
    EXPECT_EQ(peak, plan.summary.peak_bytes);
    EXPECT_EQ(simulation.memory.front().bytes, simulation.memory.back().bytes);
  });
}

TEST(TierLanes, ShareTheTierWhileBothAreBusy) {
  const TierProfile profile{100, 50, 40, 20, 0, false};
  TierLanes lanes(profile, 3);
  lanes.start(0, false, 400, 0);
  lanes.start(1, true, 100, 0);
  // Together 40 and 20 until the write is complete at 5, then 100 for the remaining 200 bytes.
  EXPECT_DOUBLE_EQ(lanes.wait(1, 0), 5);
  EXPECT_DOUBLE_EQ(lanes.wait(0, 5), 7);
  EXPECT_DOUBLE_EQ(lanes.busy_seconds(false), 7);
  EXPECT_DOUBLE_EQ(lanes.busy_seconds(true), 5);
  // Idle until it is asked again; the first of two reads goes first.
  lanes.start(0, false, 100, 10);
  lanes.start(2, false, 100, 10);
  EXPECT_DOUBLE_EQ(lanes.wait(2, 10), 12);
  EXPECT_DOUBLE_EQ(lanes.wait(0, 12), 12);
  EXPECT_DOUBLE_EQ(lanes.interval(0).end_seconds, 11);
}

TEST(TierLanes, WhatIsWaitedForOvertakes) {
  const TierProfile profile{100, 50, 40, 20, 0.5, true};
  TierLanes lanes(profile, 3);
  lanes.start(0, false, 100, 0);
  lanes.start(1, false, 100, 0);
  lanes.start(2, true, 100, 0);
  EXPECT_DOUBLE_EQ(lanes.wait(1, 0), 1.5);
  // The others had to stand still meanwhile.
  EXPECT_DOUBLE_EQ(lanes.wait(0, 1.5), 1.5 + (100 - 0.5 * 40) / 100 + 0.5);
}

}  // namespace
}  // namespace penstock::plan
