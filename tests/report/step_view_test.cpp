#include "report/step_view.h"

#include <gtest/gtest.h>

#include "report/traced_step.h"

namespace penstock::report {
namespace {

std::int64_t highest(const std::vector<plan::MemoryPoint>& points) {
  std::int64_t high = 0;
  for (const plan::MemoryPoint& point : points) high = std::max(high, point.bytes);
  return high;
}

TEST(StepView, MemoryIsThePoolsOwn) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const TracedStep traced(seed);
    const std::vector<StepView> views = view_steps(traced.problem, traced.plan, traced.traces, 7);
    for (std::size_t i = 0; i < views.size(); ++i) {
      const StepView& view = views[i];
      EXPECT_EQ(view.step, static_cast<std::int64_t>(7 + i));
      EXPECT_EQ(highest(view.memory), traced.stats[i].peak_pool_bytes);
      EXPECT_LE(highest(view.prefetched), highest(view.memory));
      EXPECT_GT(highest(view.prefetched), 0);
      EXPECT_EQ(view.memory.front().bytes, view.memory.back().bytes);
      EXPECT_EQ(highest(view.in_memory), plan::keep_bytes(traced.problem) + traced.problem.fixed_bytes);
    }
  }
}

TEST(StepView, HasEveryRunAndEveryTransfer) {
  const TracedStep traced(3, 3);
  const StepView view = view_steps(traced.problem, traced.plan, traced.traces)[1];
  std::int64_t runs = 0, read = 0, written = 0;
  for (const LaneEvent& event : view.events) {
    EXPECT_LE(event.start_seconds, event.end_seconds);
    if (event.lane == Lane::compute && event.kind != Kind::stall) ++runs;
    if (event.lane == Lane::reads) read += event.size_bytes;
    if (event.lane == Lane::writes) written += event.size_bytes;
  }
  EXPECT_EQ(runs, traced.plan.summary.runs);
  EXPECT_EQ(read, traced.plan.summary.swapped_in_bytes);
  EXPECT_EQ(written, traced.plan.summary.swapped_out_bytes);
}

/// A step of one op and two reads, with times that are told.
TEST(StepView, TransfersFollowOneAnother) {
  const TracedStep traced(0);
  run::Trace trace;
  trace.events = {{plan::Action::swap_in, 0, false, 0, 4},
                  {plan::Action::swap_in, 1, false, 1, 6},
                  {plan::Action::swap_in, 2, false, 1, 6},
                  {plan::Action::swap_in, 3, false, 9, 10},
                  {plan::Action::run, 0, false, 0, 10}};
  const StepView view = view_steps(traced.problem, {}, {&trace, 1})[0];
  std::vector<LaneEvent> reads;
  for (const LaneEvent& event : view.events) {
    if (event.lane == Lane::reads) reads.push_back(event);
  }
  ASSERT_EQ(reads.size(), 4U);
  EXPECT_EQ(reads[0].start_seconds, 0);
  EXPECT_EQ(reads[1].start_seconds, 4);
  EXPECT_EQ(reads[1].end_seconds, reads[2].start_seconds);
  EXPECT_EQ(reads[2].end_seconds, 6);
  EXPECT_EQ(reads[3].start_seconds, 9);
}

TEST(StepView, WhatIsBetweenRanksIsOnTheNetwork) {
  ir::Graph graph;
  const auto tensor = [&](const char* name) {
    return graph.add_tensor(name, ir::DType::f32, ir::Shape{16}, ir::Role::gradient);
  };
  const auto op = [&](ir::OpKind kind, std::vector<ir::TensorId> inputs, std::vector<ir::TensorId> outputs) {
    ir::Op made;
    made.kind = kind;
    made.phase = ir::Phase::backward;
    made.name = ir::op_name(kind);
    made.inputs = std::move(inputs);
    made.outputs = std::move(outputs);
    graph.add_op(made);
  };
  const ir::TensorId gradient = tensor("gradient"), bucket = tensor("bucket"), mean = tensor("mean");
  op(ir::OpKind::input, {}, {gradient});
  op(ir::OpKind::reduce_start, {gradient}, {bucket});
  op(ir::OpKind::reduce_wait, {bucket}, {mean});
  const plan::Problem problem =
      plan::make_problem(graph, std::vector<std::int64_t>{}, plan::grain_rule(1 << 20, 64));
  plan::Plan plan;
  run::Trace trace;
  for (int i = 0; i < 3; ++i) {
    plan.instructions.push_back({plan::Action::run, i, 0});
    trace.events.push_back({plan::Action::run, i, false, 2.0 * i, 2.0 * i + 1});
  }
  const StepView view = view_steps(problem, plan, {&trace, 1})[0];
  ASSERT_EQ(view.events.size(), 4U);
  EXPECT_EQ(view.events.back().lane, Lane::network);
  EXPECT_EQ(view.events.back().name, "bucket");
  EXPECT_EQ(view.events.back().start_seconds, 3);
  EXPECT_EQ(view.events.back().end_seconds, 5);
  EXPECT_EQ(view.events.back().size_bytes, 64);
}

}  // namespace
}  // namespace penstock::report
