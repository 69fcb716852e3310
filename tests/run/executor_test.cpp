#include "run/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "base/error.h"
#include "fit/move_count.h"
#include "fit/offset_check.h"
#include "memory/virtual_pool.h"
#include "plan/auto.h"
#include "plan/checker.h"
#include "plan/policies.h"
#include "plan/random_profile.h"
#include "run/toy.h"

namespace penstock::run {
namespace {

/// A virtual pool that rounds as the smallest do.
constexpr std::int64_t kSmall = std::int64_t{1} << 20;

/// The state and the losses after some steps of `keep` in plenty of memory: what every other run must give.
struct Outcome {
  std::uint64_t state = 0;
  LongVector<float> losses;
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
    kernels::StepContext c = context(static_cast<std::uint64_t>(i));
    c.take = [&](int, const void* loss) { outcome.losses.push_back(*static_cast<const float*>(loss)); };
    const StepStats stats = executor.run(step, plan, c);
    EXPECT_EQ(stats.swapped_in_bytes, plan.summary.swapped_in_bytes);
    EXPECT_EQ(stats.swapped_out_bytes, plan.summary.swapped_out_bytes);
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

/// Capacity at which the plan's budget is `budget_bytes`: the pool's small slots come on top.
std::int64_t capacity_for(const StorageMap& map, std::int64_t budget_bytes) {
  return budget_bytes + virtual_pool_rule(map, budget_bytes).fixed_bytes;
}

struct PolicyCase {
  const char* name;
  plan::Plan (*make)(const plan::Problem&);
};
const PolicyCase kSwapping[] = {
    {"window", [](const plan::Problem& p) { return plan::plan_window(p); }},
    {"lms", [](const plan::Problem& p) { return plan::plan_lms(p); }},
};

TEST(Executor, SwappingChangesNoBit) {
  std::int64_t swapped_runs = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const lower::Executable step =
        toy_executable(plan::random_step(seed, {static_cast<int>(3 + seed % 9), 8192, true}));
    const Outcome expected = reference(step, 3);
    const lower::Executable* const all[] = {&step};
    const StorageMap slots = map_slots(all);
    const plan::Problem roomy = make_problem(step, slots, kPlenty);
    const std::int64_t smallest = plan::smallest_bytes(roomy), in_memory = plan::keep_bytes(roomy);
    for (const PolicyCase& policy : kSwapping) {
      for (int part = 0; part < 4; ++part) {
        const std::int64_t capacity = capacity_for(slots, smallest + (in_memory - smallest) * part / 4);
        const plan::Problem problem = make_problem(step, slots, capacity);
        plan::Plan plan;
        try {
          plan = policy.make(problem);
        } catch (const UserError&) {
          continue;
        }
        plan::prove(problem, plan);
        StorageMap map = slots;
        const plan::Plan* const plans[] = {&plan};
        map_extents(map, plans);
        VirtualPool pool(map.slot_bytes, capacity, true);
        LazyTier tier(map.extents());
        Executor executor(pool, map, &tier);
        EXPECT_TRUE(run_steps(executor, step, plan, 3) == expected)
            << policy.name << " seed " << seed << " part " << part;
        if (plan.summary.swapped_in_bytes > 0) ++swapped_runs;
      }
    }
  }
  EXPECT_GT(swapped_runs, 80);
}

/// The same where plans say the places, and a storage may be elsewhere at each stay.
TEST(Executor, PlacesThatChangeChangeNoBit) {
  int elsewhere = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const lower::Executable step =
        toy_executable(plan::random_step(seed, {static_cast<int>(3 + seed % 9), 8192, true}));
    const Outcome expected = reference(step, 3);
    const lower::Executable* const all[] = {&step};
    StorageMap map = map_slots(all);
    const std::shared_ptr<const fit::PoolModel> model =
        seed % 2 == 0 ? fit::make_packed_model(map) : fit::make_virtual_model(map, kSmall);
    plan::Problem problem = fit::step_problem(step, map, model->rule(kPlenty));
    problem.budget_bytes = plan::smallest_bytes(problem);
    plan::Plan plan = plan::plan_window(problem);
    plan::prove(problem, plan);
    const fit::PlannedStep steps[] = {{&step, &problem, &plan}};
    const fit::Layout layout = model->lay_out(steps, {});
    plan.offsets = layout.offsets.front();
    plan.homes = layout.homes;
    EXPECT_EQ(fit::check_offsets(map, steps, layout.size, model->grain_bytes()), "");
    const plan::Plan* const plans[] = {&plan};
    map_extents(map, plans);
    const std::unique_ptr<Pool> pool = poisoned_pool(map, *model, layout.size);
    LazyTier tier(map.extents());
    Executor executor(*pool, map, &tier, plan.homes);
    EXPECT_TRUE(run_steps(executor, step, plan, 3) == expected) << seed;
    EXPECT_LE(pool->peak_bytes(), layout.size.pool_bytes);
    std::map<ir::StorageId, std::int64_t> first;
    std::size_t next = 0;
    for (const plan::Instruction& in : plan.instructions) {
      const bool scratch =
          in.action == plan::Action::run && step.kernel(in.id, in.variant).scratch_bytes() > 0;
      if (in.action == plan::Action::acquire || in.action == plan::Action::swap_in) {
        const std::int64_t place = plan.offsets.at(next++);
        if (first.try_emplace(in.id, place).first->second != place) ++elsewhere;
      }
      if (scratch) ++next;
    }
    EXPECT_EQ(next, plan.offsets.size());
  }
  EXPECT_GT(elsewhere, 10);
}

struct LaidOut {
  plan::Problem problem;
  plan::Plan plan;
  fit::Layout layout;
};

/// The window's plan for the smallest budget, at the model's offsets; what it swaps has its extents.
LaidOut lay_out_smallest(const lower::Executable& step, StorageMap& map, const fit::PoolModel& model) {
  LaidOut made;
  auto& [problem, plan, layout] = made;
  problem = fit::step_problem(step, map, model.rule(kPlenty));
  problem.budget_bytes = plan::smallest_bytes(problem);
  plan = plan::plan_window(problem);
  plan::prove(problem, plan);
  const fit::PlannedStep planned{&step, &problem, &plan};
  layout = model.lay_out({&planned, 1}, {});
  plan.offsets = layout.offsets.front();
  plan.homes = layout.homes;
  const plan::Plan* const plans[] = {&plan};
  map_extents(map, plans);
  return made;
}

TEST(Executor, MovesMemoryAsOftenAsARehearsal) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const lower::Executable step =
        toy_executable(plan::random_step(seed, {static_cast<int>(6 + seed % 6), 65536, true}));
    const lower::Executable* const all[] = {&step};
    StorageMap map = map_slots(all);
    const std::shared_ptr<const fit::PoolModel> model = fit::make_virtual_model(map, kSmall);
    const LaidOut laid_out = lay_out_smallest(step, map, *model);
    const auto& [problem, plan, layout] = laid_out;
    const fit::PlannedStep planned{&step, &problem, &plan};
    const VirtualPoolRule rule(kSmall);
    VirtualPool pool(map.slot_bytes, rule,
                     {layout.size.small_bytes, layout.size.paged_bytes, layout.size.address_bytes}, false);
    LazyTier tier(map.extents());
    Executor executor(pool, map, &tier, plan.homes);
    fill_state(executor, step);
    constexpr int kWarmUp = 4, kSteps = 8;
    std::int64_t before = 0;
    for (int i = 0; i < kWarmUp + kSteps; ++i) {
      if (i == kWarmUp) before = pool.moves();
      executor.run(step, plan, context(static_cast<std::uint64_t>(i)));
    }
    std::int64_t times = 0;
    for (const plan::Instruction& in : plan.instructions) {
      const bool storage = in.action == plan::Action::acquire || in.action == plan::Action::swap_in ||
                           in.action == plan::Action::adopt;
      if (storage) ++times;
      if (in.action == plan::Action::run && problem.op(in.id).scratch_bytes[0] > 0) ++times;
    }
    const double seen = static_cast<double>(pool.moves() - before) / kSteps / static_cast<double>(times);
    const double rehearsed = fit::count_moves(planned, map, rule, layout.size).moves_each;
    // How memory lay when it began may differ, and with it how it is cut later on.
    EXPECT_NEAR(rehearsed, seen, 0.25 * seen + 0.1) << seed;
  }
}

/// A pool that moves whole huge pages: what is smaller shares memory that stays, and is swapped all the same.
TEST(Executor, APoolOfHugePagesChangesNoBit) {
  std::int64_t small_swaps = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const lower::Executable step = toy_executable(plan::random_step(seed, {7, 200000, true}));
    const Outcome expected = reference(step, 3);
    const lower::Executable* const all[] = {&step};
    StorageMap map = map_slots(all);
    const std::shared_ptr<const fit::PoolModel> model = fit::make_virtual_model(map, std::int64_t{32} << 30);
    EXPECT_EQ(model->grain_bytes(), 2 * kMiB);
    const LaidOut laid_out = lay_out_smallest(step, map, *model);
    const auto& [problem, plan, layout] = laid_out;
    const fit::PlannedStep planned{&step, &problem, &plan};
    for (const plan::Instruction& in : plan.instructions) {
      const bool swaps = in.action == plan::Action::swap_in;
      if (swaps && problem.storage(in.id).size_bytes <= kMiB / 2) ++small_swaps;
    }
    const fit::MoveCount moves =
        fit::count_moves(planned, map, VirtualPoolRule(model->rounding_bytes()), layout.size);
    EXPECT_LE(moves.moved_share, 1.0 / 8) << "huge pages move as a whole";
    const std::unique_ptr<Pool> pool = poisoned_pool(map, *model, layout.size);
    LazyTier tier(map.extents());
    Executor executor(*pool, map, &tier, plan.homes);
    EXPECT_TRUE(run_steps(executor, step, plan, 3) == expected) << seed;
  }
  EXPECT_GT(small_swaps, 0);
}

TEST(Executor, WritingOverWhatIsMadeAnewChangesNoBit) {
  std::int64_t adopts = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const lower::Executable step =
        toy_executable(plan::random_step(seed, {static_cast<int>(5 + seed % 6), 8192, true, true}));
    const Outcome expected = reference(step, 3);
    const lower::Executable* const all[] = {&step};
    StorageMap map = map_slots(all);
    const plan::Problem roomy = make_problem(step, map, kPlenty);
    const std::int64_t capacity = capacity_for(map, plan::smallest_bytes(roomy));
    const plan::Problem problem = make_problem(step, map, capacity);
    plan::Plan plan = plan::plan_auto(problem, plan::random_profile(problem, seed, 1e6), {true, 40});
    plan::prove(problem, plan);
    const plan::Plan* const plans[] = {&plan};
    map_extents(map, plans);
    for (const bool poison : {true, false}) {
      VirtualPool pool(map.slot_bytes, capacity, poison);
      LazyTier tier(map.extents());
      Executor executor(pool, map, &tier);
      EXPECT_TRUE(run_steps(executor, step, plan, 3) == expected) << seed;
      EXPECT_EQ(pool.peak_bytes(), plan.summary.peak_bytes + problem.fixed_bytes) << seed;
    }
    adopts += plan::count(plan, plan::Action::adopt);
  }
  EXPECT_GT(adopts, 20);
}

/// A value that was written, then made anew on the way to another, is still on the tier; one of the step
/// before is not.
TEST(Executor, WhatIsMadeAnewIsStillOnTheTier) {
  int changed = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const lower::Executable step = toy_executable(plan::random_step(seed));
    const Outcome expected = reference(step, 3);
    const lower::Executable* const all[] = {&step};
    StorageMap map = map_slots(all);
    const plan::Problem problem = make_problem(step, map, kPlenty);
    plan::Plan plan = plan::plan_keep(problem);
    // After each op without side effects that makes one value: out, gone, made anew, gone again, back.
    LongVector<plan::Instruction> instructions;
    for (const plan::Instruction& in : plan.instructions) {
      instructions.push_back(in);
      if (in.action != plan::Action::run) continue;
      const ir::Op& op = step.graph.op(in.id);
      const auto& uses = problem.op(in.id).uses;
      if (op.outputs.empty()) continue;
      const ir::StorageId s = step.graph.tensor(op.outputs.front()).storage;
      const bool in_place = std::any_of(uses.begin(), uses.end(),
                                        [&](const plan::Use& use) { return use.storage == s && use.reads; });
      if (op.outputs.size() != 1 || in_place || ir::has_side_effects(op.kind) ||
          !problem.storage(s).swappable || problem.storage(s).carried) {
        continue;
      }
      using plan::Action;
      for (const plan::Instruction& more : {plan::Instruction{Action::swap_out, s},
                                            {Action::wait, s},
                                            {Action::release, s},
                                            {Action::acquire, s},
                                            {Action::run, in.id},
                                            {Action::release, s},
                                            {Action::swap_in, s},
                                            {Action::wait, s}}) {
        instructions.push_back(more);
      }
      ++changed;
    }
    plan.instructions = instructions;
    plan::prove(problem, plan);
    const plan::Plan* const plans[] = {&plan};
    map_extents(map, plans);
    VirtualPool pool(map.slot_bytes, kPlenty, true);
    LazyTier tier(map.extents());
    Executor executor(pool, map, &tier);
    EXPECT_TRUE(run_steps(executor, step, plan, 3) == expected) << seed;
  }
  EXPECT_GT(changed, 50);
}

TEST(Executor, MeasuredPeakIsThePlannedOne) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const lower::Executable step = toy_executable(plan::random_step(seed));
    const lower::Executable* const all[] = {&step};
    StorageMap map = map_slots(all);
    const plan::Problem roomy = make_problem(step, map, kPlenty);
    const std::int64_t capacity =
        capacity_for(map, (plan::smallest_bytes(roomy) + plan::keep_bytes(roomy)) / 2);
    const plan::Problem problem = make_problem(step, map, capacity);
    plan::Plan plan = plan::plan_window(problem);
    plan::prove(problem, plan);
    const plan::Plan* const plans[] = {&plan};
    map_extents(map, plans);
    VirtualPool pool(map.slot_bytes, capacity, true);
    LazyTier tier(map.extents());
    Executor executor(pool, map, &tier);
    fill_state(executor, step);
    executor.run(step, plan, context(0));
    const StepStats stats = executor.run(step, plan, context(1));
    EXPECT_EQ(stats.peak_pool_bytes, plan.summary.peak_bytes + problem.fixed_bytes) << seed;
  }
}

TEST(Executor, StateCanBeReadAndWrittenBetweenStepsWithinTheBudget) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const lower::Executable step = toy_executable(plan::random_step(seed));
    const lower::Executable* const all[] = {&step};
    StorageMap map = map_slots(all);
    const plan::Problem roomy = make_problem(step, map, kPlenty);
    const std::int64_t capacity = capacity_for(map, plan::smallest_bytes(roomy));
    plan::Problem problem = make_problem(step, map, capacity);
    const plan::Plan plan = plan::plan_window(problem);
    const plan::Plan* const plans[] = {&plan};
    map_extents(map, plans);
    VirtualPool pool(map.slot_bytes, capacity, true);
    LazyTier tier(map.extents());
    Executor executor(pool, map, &tier);
    fill_state(executor, step);
    std::uint64_t digest = 0;
    for (std::uint64_t i = 0; i < 3; ++i) {
      executor.run(step, plan, context(i));
      if (i == 1) executor.quiesce();
      digest = state_digest(executor, step);
    }
    EXPECT_EQ(digest, reference(step, 3).state) << seed;
    // Written anew, as a checkpoint is loaded, the state is that of the beginning.
    fill_state(executor, step);
    for (std::uint64_t i = 0; i < 3; ++i) executor.run(step, plan, context(i));
    EXPECT_EQ(state_digest(executor, step), digest) << seed;
  }
}

TEST(Executor, PlansCanBeChangedBetweenSteps) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const lower::Executable step = toy_executable(plan::random_step(seed));
    const lower::Executable* const all[] = {&step};
    StorageMap map = map_slots(all);
    const plan::Problem roomy = make_problem(step, map, kPlenty);
    const std::int64_t smallest = plan::smallest_bytes(roomy), in_memory = plan::keep_bytes(roomy);
    LongVector<plan::Plan> plans;
    for (const std::int64_t budget : {in_memory, smallest, (smallest + in_memory) / 2}) {
      plans.push_back(plan::plan_window(make_problem(step, map, capacity_for(map, budget))));
    }
    const plan::Plan* const pointers[] = {&plans[0], &plans[1], &plans[2]};
    map_extents(map, pointers);
    const std::int64_t capacity = capacity_for(map, in_memory);
    VirtualPool pool(map.slot_bytes, capacity, true);
    LazyTier tier(map.extents());
    Executor executor(pool, map, &tier);
    fill_state(executor, step);
    for (std::uint64_t i = 0; i < 5; ++i) executor.run(step, plans[i % 3], context(i));
    EXPECT_EQ(state_digest(executor, step), reference(step, 5).state) << seed;
  }
}

TEST(Executor, TierErrorsSurfaceAndNothingHangs) {
  const lower::Executable step = toy_executable(plan::random_step(4));
  const lower::Executable* const all[] = {&step};
  StorageMap map = map_slots(all);
  const plan::Problem roomy = make_problem(step, map, kPlenty);
  const std::int64_t capacity = capacity_for(map, plan::smallest_bytes(roomy));
  const plan::Plan plan = plan::plan_window(make_problem(step, map, capacity));
  const plan::Plan* const plans[] = {&plan};
  map_extents(map, plans);
  int failed = 0;
  for (std::int64_t fail_at = 0; fail_at < 60; ++fail_at) {
    VirtualPool pool(map.slot_bytes, capacity, true);
    LazyTier tier(map.extents(), fail_at);
    Executor executor(pool, map, &tier);
    try {
      fill_state(executor, step);
      executor.run(step, plan, context(0));
      executor.run(step, plan, context(1));
    } catch (const RunError& error) {
      EXPECT_STREQ(error.what(), "the disk is on fire");
      ++failed;
    }
  }
  EXPECT_GT(failed, 20);
}

}  // namespace
}  // namespace penstock::run
