#include "run/executor.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "memory/virtual_pool.h"
#include "plan/checker.h"
#include "plan/policies.h"
#include "run/pool_rule.h"
#include "run/toy.h"

namespace penstock::run {
namespace {

constexpr std::int64_t kPlenty = std::int64_t{1} << 24;

/// The state and the losses after some steps of `keep` in plenty of memory: what every other run must give.
struct Outcome {
  std::uint64_t state = 0;
  std::vector<float> losses;
  bool operator==(const Outcome& other) const {
    return state == other.state && losses.size() == other.losses.size() &&
           std::memcmp(losses.data(), other.losses.data(), losses.size() * sizeof(float)) == 0;
  }
};

kernels::StepContext context(std::uint64_t step) {
  kernels::StepContext c;
  c.seed = 7;
  c.step = step;
  return c;
}

Outcome run_steps(Executor& executor, const lower::Executable& step, const plan::Plan& plan, int steps) {
  Outcome outcome;
  fill_state(executor, step);
  for (int i = 0; i < steps; ++i) {
    const StepStats stats = executor.run(step, plan, context(static_cast<std::uint64_t>(i)));
    EXPECT_EQ(stats.swapped_in_bytes, plan.summary.swapped_in_bytes);
    EXPECT_EQ(stats.swapped_out_bytes, plan.summary.swapped_out_bytes);
    outcome.losses.push_back(executor.result_f32(step.graph.loss));
  }
  outcome.state = state_digest(executor, step);
  return outcome;
}

Outcome reference(const lower::Executable& step, int steps) {
  const lower::Executable* const all[] = {&step};
  const StorageMap map = map_slots(all);
  const plan::Problem problem = make_problem(step, map, kPlenty);
  plan::Plan plan = plan::plan_keep(problem);
  plan::prove(problem, plan);
  VirtualPool pool(map.slot_bytes, kPlenty, true);
  Executor executor(pool, map, nullptr);
  return run_steps(executor, step, plan, steps);
}

TEST(Executor, KeepsStateAndPeak) {
  const lower::Executable step = toy_executable(plan::random_step(1));
  const lower::Executable* const all[] = {&step};
  const StorageMap map = map_slots(all);
  const plan::Problem problem = make_problem(step, map, kPlenty);
  plan::Plan plan = plan::plan_keep(problem);
  plan::prove(problem, plan);
  VirtualPool pool(map.slot_bytes, kPlenty, true);
  Executor executor(pool, map, nullptr);
  fill_state(executor, step);
  const std::uint64_t before = state_digest(executor, step);
  const StepStats stats = executor.run(step, plan, context(0));
  EXPECT_NE(state_digest(executor, step), before);
  EXPECT_EQ(stats.peak_pool_bytes, plan.summary.peak_bytes + problem.fixed_bytes);
  EXPECT_EQ(pool.peak_bytes(), plan.summary.peak_bytes + problem.fixed_bytes);
  EXPECT_GT(stats.compute_seconds, 0);
  EXPECT_EQ(stats.recompute_seconds, 0);
}

TEST(Executor, TracesWhatItRan) {
  const lower::Executable step = toy_executable(plan::random_step(2));
  const lower::Executable* const all[] = {&step};
  const StorageMap map = map_slots(all);
  const plan::Plan plan = plan::plan_keep(make_problem(step, map, kPlenty));
  VirtualPool pool(map.slot_bytes, kPlenty, true);
  Executor executor(pool, map, nullptr);
  fill_state(executor, step);
  Trace trace;
  executor.set_trace(&trace);
  executor.run(step, plan, context(0));
  ASSERT_EQ(trace.events.size(), step.graph.ops.size());
  double last = 0;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    EXPECT_EQ(trace.events[i].id, static_cast<ir::OpId>(i));
    EXPECT_GE(trace.events[i].start_seconds, last);
    last = trace.events[i].end_seconds;
  }
}

TEST(Executor, RefusesUnwrittenState) {
  const lower::Executable step = toy_executable(plan::random_step(1));
  const lower::Executable* const all[] = {&step};
  const StorageMap map = map_slots(all);
  const plan::Plan plan = plan::plan_keep(make_problem(step, map, kPlenty));
  VirtualPool pool(map.slot_bytes, kPlenty, true);
  Executor executor(pool, map, nullptr);
  EXPECT_THROW(executor.run(step, plan, context(0)), InternalError);
}

TEST(Executor, RunsAreReproducible) {
  const lower::Executable step = toy_executable(plan::random_step(3));
  EXPECT_TRUE(reference(step, 3) == reference(step, 3));
  EXPECT_FALSE(reference(step, 3) == reference(step, 4));
}

}  // namespace
}  // namespace penstock::run
