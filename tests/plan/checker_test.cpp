#include "plan/checker.h"

#include <gtest/gtest.h>

#include "plan/budget_error.h"
#include "plan/policies.h"
#include "plan/random_step.h"

namespace penstock::plan {
namespace {
constexpr std::int64_t kGrain = 64;

/// data -> x; f: x, w -> y; g: y -> z in y's storage; u: w, z -> w'.
struct Small {
  ir::Graph graph;
  ir::TensorId x, w, y, z, updated;
  enum Op : ir::OpId { data, f, g, u };

  Small() {
    x = graph.add_tensor("x", ir::DType::f32, {16}, ir::Role::input);
    w = graph.add_state("w", {32}, ir::Role::parameter, {});
    y = graph.add_tensor("y", ir::DType::f32, {64}, ir::Role::activation);
    z = graph.add_successor(y, "z");
    updated = graph.add_successor(w, "w'");
    graph.replace_carried(w, updated);
    add(ir::OpKind::input, "data", {}, {x});
    add(ir::OpKind::conv, "f", {x, w}, {y});
    add(ir::OpKind::activation, "g", {y}, {z});
    add(ir::OpKind::sgd_update, "u", {w, z}, {updated});
  }

  void add(ir::OpKind kind, const char* name, LongVector<ir::TensorId> inputs,
           LongVector<ir::TensorId> outputs) {
    ir::Op op;
    op.kind = kind;
    op.name = name;
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    graph.add_op(std::move(op));
  }

  ir::StorageId storage(ir::TensorId t) const { return graph.tensor(t).storage; }
  Problem problem(std::int64_t budget_bytes = kPlenty) const {
    const LongVector<std::int64_t> scratch{0, 100, 0, 0};
    return make_problem(graph, scratch, grain_rule(budget_bytes, kGrain));
  }
  Instruction acquire(ir::TensorId t) const { return {Action::acquire, storage(t)}; }
  Instruction release(ir::TensorId t) const { return {Action::release, storage(t)}; }
  Instruction swap_in(ir::TensorId t) const { return {Action::swap_in, storage(t)}; }
  Instruction swap_out(ir::TensorId t) const { return {Action::swap_out, storage(t)}; }
  Instruction wait(ir::TensorId t) const { return {Action::wait, storage(t)}; }
  static Instruction run(ir::OpId op) { return {Action::run, op}; }

  Plan in_memory() const {
    Plan plan;
    plan.boundary = {{storage(w), true, false, Transfer::none}};
    plan.instructions = {acquire(x), run(data), acquire(y), run(f), release(x), run(g), run(u), release(y)};
    return plan;
  }
  Plan swapped() const {
    Plan plan;
    plan.boundary = {{storage(w), false, true, Transfer::none}};
    plan.instructions = {swap_in(w), acquire(x),  run(data), acquire(y), wait(w), run(f),
                         release(w), release(x),  run(g),    swap_in(w), wait(w), run(u),
                         release(y), swap_out(w), wait(w),   release(w)};
    return plan;
  }
};

void expect_rejected(const Problem& problem, const Plan& plan, std::size_t instruction,
                     const std::string& words) {
  const CheckResult result = check(problem, plan);
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.instruction, instruction) << result.message;
  EXPECT_NE(result.message.find(words), std::string::npos) << result.message;
}

TEST(Checker, AcceptsAndCounts) {
  const Small s;
  const CheckResult kept = check(s.problem(), s.in_memory());
  ASSERT_TRUE(kept.ok) << kept.message;
  // w 128, x 64, y 256, scratch 128.
  EXPECT_EQ(kept.summary.peak_bytes, 576);
  EXPECT_EQ(kept.summary.runs, 4);
  EXPECT_EQ(kept.summary.swapped_in_bytes, 0);

  const CheckResult swapped = check(s.problem(), s.swapped());
  ASSERT_TRUE(swapped.ok) << swapped.message;
  EXPECT_EQ(swapped.summary.swapped_in_bytes, 256);
  EXPECT_EQ(swapped.summary.swapped_out_bytes, 128);
}

TEST(Checker, HoldsTheBudgetIncludingScratch) {
  const Small s;
  EXPECT_TRUE(check(s.problem(576), s.in_memory()).ok);
  expect_rejected(s.problem(575), s.in_memory(), 3, "needs 576 bytes, the budget is 575");
}

/// data -> x; f: x -> y; g: y -> z, which it may write over y; h: z -> w; y -> again.
struct Overwriting {
  Small s;
  ir::TensorId y, z;
  Problem problem;
  ir::OpId f, g, h;

  Overwriting() {
    y = s.graph.add_tensor("v", ir::DType::f32, {64}, ir::Role::activation);
    z = s.graph.add_tensor("t", ir::DType::f32, {64}, ir::Role::activation);
    const ir::TensorId last = s.graph.add_tensor("last", ir::DType::f32, {64}, ir::Role::activation);
    f = static_cast<ir::OpId>(s.graph.ops.size());
    s.add(ir::OpKind::conv, "ff", {s.x}, {y});
    s.add(ir::OpKind::activation, "gg", {y}, {z});
    s.add(ir::OpKind::activation, "hh", {y, z}, {last});
    g = f + 1;
    h = f + 2;
    problem = make_problem(s.graph, {}, grain_rule(kPlenty, kGrain));
    const Overwrite allowed[] = {{s.storage(y), s.storage(z)}};
    problem.ops.set_overwrites(static_cast<std::size_t>(g), allowed);
    plan = s.in_memory();
    plan.instructions = {s.acquire(s.x),  s.run(Small::data),
                         s.acquire(s.y),  s.run(Small::f),
                         s.run(Small::g), s.run(Small::u),
                         s.release(s.y),  s.acquire(y),
                         s.run(f),        {Action::adopt, s.storage(z), 0, s.storage(y)},
                         s.run(g),        s.acquire(y),
                         s.run(f),        s.release(s.x),
                         s.acquire(last), s.run(h),
                         s.release(y),    s.release(z),
                         s.release(last)};
  }
  static constexpr std::size_t kAdopt = 9;
  Plan plan;
};

TEST(Checker, AcceptsThatAnOpWritesOverWhatIsMadeAnew) {
  const Overwriting o;
  const CheckResult result = check(o.problem, o.plan);
  ASSERT_TRUE(result.ok) << result.message;
  EXPECT_EQ(result.summary.recomputed, 1);
  // w 128, then y, z and last at once.
  EXPECT_EQ(result.summary.peak_bytes, 128 + 3 * 256);
}

TEST(Checker, RejectsOverwritingThatIsNotAllowed) {
  const Overwriting good;
  {
    Overwriting o;
    o.problem.ops.set_overwrites(static_cast<std::size_t>(o.g), {});
    expect_rejected(o.problem, o.plan, Overwriting::kAdopt + 1, "it does not write 't' over 'v'");
  }
  const auto with = [&](auto change) {
    Plan plan = good.plan;
    change(plan.instructions);
    return plan;
  };
  using List = LongVector<Instruction>;
  // What was written over is gone.
  expect_rejected(good.problem, with([](List& list) { list.erase(list.begin() + 12); }), 14,
                  "input 'v' is not in memory");
  expect_rejected(good.problem, with([&](List& list) { list[9].from = good.s.storage(good.s.w); }), 9,
                  "'w' is state");
  expect_rejected(good.problem, with([&](List& list) { list[9].from = good.s.storage(good.s.x); }), 9,
                  "'x' has another size");
  expect_rejected(good.problem, with([&](List& list) { list[9].from = good.s.storage(good.s.y); }), 9,
                  "'y' holds no value");
  expect_rejected(good.problem, with([&](List& list) { list[9].from = 1000; }), 9, "no such storage");
  expect_rejected(good.problem,
                  with([&](List& list) { list.insert(list.begin() + 9, good.s.swap_out(good.y)); }), 10,
                  "a transfer of 'v' is under way");
  // Its new owner does not have a value of its own before the op has run.
  expect_rejected(good.problem,
                  with([&](List& list) { list.insert(list.begin() + 10, good.s.swap_out(good.z)); }), 10,
                  "must run first");
  // Nor is anything else done before: the op reads what was adopted, wherever the input is by then.
  const ir::TensorId v = good.y, t = good.z;
  expect_rejected(good.problem, with([&](List& list) {
                    list.insert(list.begin() + 10, {good.s.swap_in(v), good.s.wait(v)});
                    list.insert(list.begin() + 9, {good.s.swap_out(v), good.s.wait(v)});
                  }),
                  12, "must run first");
  expect_rejected(good.problem, with([&](List& list) {
                    list.insert(list.begin() + 10,
                                {good.s.release(t), good.s.swap_in(v), good.s.wait(v), good.s.acquire(t)});
                    list.insert(list.begin() + 9, {good.s.swap_out(v), good.s.wait(v)});
                  }),
                  12, "must run first");
  // Another op cannot have it.
  expect_rejected(good.problem,
                  with([&](List& list) { list.insert(list.begin() + 10, Small::run(Small::f)); }), 10,
                  "it does not write 't' over 'v'");
}

TEST(Checker, RejectsAnotherKernelWhenAnOpRunsAgain) {
  const Small s;
  const LongVector<LongVector<std::int64_t>> scratch{{0}, {0, 100}, {0}, {0}};
  const Problem problem = make_problem(s.graph, VariantScratch(scratch), grain_rule(kPlenty, kGrain));
  Plan plan = s.in_memory();
  plan.instructions = {s.acquire(s.x),          Small::run(Small::data), s.acquire(s.y),
                       {Action::run, Small::f}, Small::run(Small::g),    {Action::run, Small::f},
                       Small::run(Small::g),    s.release(s.x),          Small::run(Small::u),
                       s.release(s.y)};
  ASSERT_TRUE(check(problem, plan).ok) << check(problem, plan).message;
  plan.instructions[3].variant = plan.instructions[5].variant = 1;
  EXPECT_TRUE(check(problem, plan).ok) << check(problem, plan).message;
  plan.instructions[3].variant = 0;
  expect_rejected(problem, plan, 5, "it ran with variant 0 before");
}

TEST(Checker, RejectsUseBeforeReadIsComplete) {
  const Small s;
  Plan plan = s.swapped();
  std::swap(plan.instructions[4], plan.instructions[5]);
  expect_rejected(s.problem(), plan, 4, "'w' is still being read");
}

TEST(Checker, RejectsUseAfterRelease) {
  const Small s;
  Plan plan = s.in_memory();
  plan.instructions.insert(plan.instructions.begin() + 5, s.release(s.y));
  expect_rejected(s.problem(), plan, 6, "input 'y' is not in memory");
  plan.instructions.insert(plan.instructions.begin() + 6, s.acquire(s.y));
  expect_rejected(s.problem(), plan, 7, "holds nothing");
}

TEST(Checker, RejectsWriteWhileBeingWrittenOut) {
  const Small s;
  Plan plan = s.in_memory();
  plan.instructions.insert(plan.instructions.begin() + 5, s.swap_out(s.y));
  expect_rejected(s.problem(), plan, 6, "output 'z' is being moved");
}

TEST(Checker, RejectsAStaleTierCopy) {
  const Small s;
  Plan plan = s.swapped();
  // Without the last write, the tier has the old value of w.
  plan.instructions.erase(plan.instructions.begin() + 13, plan.instructions.begin() + 15);
  expect_rejected(s.problem(), plan, plan.instructions.size(), "the tier does not hold 'w''");
}

TEST(Checker, RejectsASecondUpdate) {
  const Small s;
  Plan plan = s.in_memory();
  plan.instructions.insert(plan.instructions.begin() + 7, Small::run(Small::u));
  expect_rejected(s.problem(), plan, 7, "its storage holds 'w''");
}

TEST(Checker, RejectsAMissingOrSecondBatch) {
  const Small s;
  Plan plan = s.in_memory();
  plan.instructions.insert(plan.instructions.begin() + 2, Small::run(Small::data));
  expect_rejected(s.problem(), plan, 2, "talk to the caller again");
}

TEST(Checker, RejectsWritingCleanData) {
  const Small s;
  Plan plan = s.swapped();
  plan.instructions.insert(plan.instructions.begin() + 6, s.swap_out(s.w));
  expect_rejected(s.problem(), plan, 6, "the tier has this value already");
}

TEST(Checker, AllowsRecomputationFromIntactInputs) {
  const Small s;
  Plan plan = s.in_memory();
  // f again after g overwrote y: x and w are still there.
  plan.instructions = {s.acquire(s.x),       Small::run(Small::data), s.acquire(s.y),
                       Small::run(Small::f), Small::run(Small::g),    s.release(s.y),
                       s.acquire(s.y),       Small::run(Small::f),    Small::run(Small::g),
                       s.release(s.x),       Small::run(Small::u),    s.release(s.y)};
  const CheckResult result = check(s.problem(), plan);
  ASSERT_TRUE(result.ok) << result.message;
  EXPECT_EQ(result.summary.recomputed, 2);
  // Not after the update: w is another by then.
  plan.instructions = {s.acquire(s.x),       Small::run(Small::data), s.acquire(s.y),
                       Small::run(Small::f), Small::run(Small::g),    Small::run(Small::u),
                       Small::run(Small::f), s.release(s.y),          s.release(s.x)};
  expect_rejected(s.problem(), plan, 6, "input 'w' is not in memory; its storage holds 'w''");
}

TEST(Checker, FollowsTransfersAcrossTheBoundary) {
  const Small s;
  Plan plan = s.swapped();
  // The read for the next step starts at the end of this one.
  plan.boundary = {{s.storage(s.w), true, true, Transfer::read}};
  plan.instructions.erase(plan.instructions.begin());
  plan.instructions.push_back(s.swap_in(s.w));
  const CheckResult result = check(s.problem(), plan);
  EXPECT_TRUE(result.ok) << result.message;
  plan.boundary[0].pending = Transfer::none;
  expect_rejected(s.problem(), plan, 3, "no transfer");
}

TEST(Checker, RejectsAnOpenCycle) {
  const Small s;
  Plan plan = s.in_memory();
  plan.instructions.pop_back();
  expect_rejected(s.problem(), plan, 7, "'y' still has memory");
  plan = s.in_memory();
  plan.boundary.clear();
  expect_rejected(s.problem(), plan, 0, "does not place 'w'");
  plan = s.swapped();
  plan.instructions.pop_back();
  expect_rejected(s.problem(), plan, 15, "'w' has memory, unlike at the beginning");
}

TEST(Checker, HoldsTheGivenBoundary) {
  const Small s;
  const LongVector<std::int64_t> scratch{0, 100, 0, 0};
  const Problem problem =
      make_problem(s.graph, scratch, grain_rule(kPlenty, kGrain), {}, s.swapped().boundary);
  EXPECT_TRUE(check(problem, s.swapped()).ok);
  EXPECT_FALSE(check(problem, s.in_memory()).ok);
}

TEST(Checker, SurvivesNonsense) {
  const Small s;
  Plan plan = s.in_memory();
  plan.instructions[0].id = 99;
  expect_rejected(s.problem(), plan, 0, "no such storage");
  plan.instructions[0] = {Action::run, -1};
  expect_rejected(s.problem(), plan, 0, "no such op");
  plan.instructions[0] = {Action::run, 0, 3};
  expect_rejected(s.problem(), plan, 0, "no variant 3");
}

TEST(Keep, NeedsWhatItSays) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const RandomStep step = random_step(seed);
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kPlenty, kGrain));
    Plan plan = plan_keep(problem);
    const std::int64_t needed = keep_bytes(problem);
    prove(problem, plan);
    EXPECT_EQ(plan.summary.peak_bytes, needed);
    problem.budget_bytes = needed;
    EXPECT_NO_THROW(plan_keep(problem));
    problem.budget_bytes = needed - 1;
    EXPECT_THROW(plan_keep(problem), BudgetError);
  }
}

}  // namespace
}  // namespace penstock::plan
