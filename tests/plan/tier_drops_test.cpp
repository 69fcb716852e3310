#include "plan/tier_drops.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "plan/make_plan.h"
#include "plan/policies.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"
#include "plan/simulator.h"
#include "plan/tier_places.h"

namespace penstock::plan {
namespace {

int count_of(const Problem& problem, const SwapSet& gaps) {
  int count = 0;
  for (std::size_t s = 0; s < problem.storages.size(); ++s) {
    for (std::size_t k = 0; k < problem.storages[s].accesses.size(); ++k)
      count += gaps.contains(static_cast<ir::StorageId>(s), k) ? 1 : 0;
  }
  return count;
}

/// Nothing is dropped where there is space, more and more where there is less, and only what can be made
/// anew.
TEST(TierDrops, AreMoreWhereThereIsLessSpace) {
  int dropped = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const RandomStep step = random_step(seed, {static_cast<int>(8 + seed), 16384, true});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kNoLimit, 256));
    const Profile profile = random_profile(problem, seed, 3e7);
    problem.budget_bytes = (7 * smallest_bytes(problem) + keep_bytes(problem)) / 8;
    const Plan swapping = plan_window(problem);
    Recomputer recomputer(problem, Recomputer::kHoldLittle);
    const LongVector<Droppable> droppable = find_droppable(problem, profile, recomputer);
    const TierDrops drops(problem, swapping, droppable, recomputer);
    EXPECT_EQ(drops.peak_bytes(), tier_peak_bytes(problem, tier_stays(problem, swapping)));
    EXPECT_EQ(count_of(problem, drops.within(drops.peak_bytes())), 0);
    int before = 0;
    for (const int eighths : {6, 4, 2, 0}) {
      const SwapSet gaps = drops.within(drops.peak_bytes() * eighths / 8);
      const int count = count_of(problem, gaps);
      EXPECT_GE(count, before);
      before = count;
      int known = 0;
      for (const Droppable& gap : droppable) known += gaps.contains(gap.storage, gap.access) ? 1 : 0;
      EXPECT_EQ(known, count);
    }
    dropped += before;
  }
  EXPECT_GT(dropped, 30);
}

/// `auto` does with less and less space on the tier, and never is far slower for having a little less.
TEST(TierDrops, AutoComputesAgainWhatTheTierCannotHold) {
  int plans = 0, refused = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const RandomStep step = random_step(seed, {static_cast<int>(8 + seed), 16384, true});
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kNoLimit, 256));
    const Profile profile = random_profile(problem, seed, 1e8);
    problem.budget_bytes = (3 * smallest_bytes(problem) + keep_bytes(problem)) / 4;
    const std::int64_t all = tier_peak_bytes(problem, tier_stays(problem, plan_window(problem)));
    PlanOptions options;
    options.policy = PolicyKind::automatic;
    options.profile = &profile;
    const double free = simulate(problem, make_plan(problem, options), profile).step_seconds;
    for (const int eighths : {6, 4}) {
      problem.tier_bytes = all * eighths / 8;
      try {
        const Plan plan = make_plan(problem, options);
        EXPECT_LE(plan.summary.tier_bytes, problem.tier_bytes);
        EXPECT_LT(simulate(problem, plan, profile).step_seconds, 2 * free) << seed << " " << eighths;
        ++plans;
      } catch (const UserError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(plans, 10);
  EXPECT_LT(refused, 4);
}

/// A chain of layers over a batch in slices: each layer runs for all slices before the next one does, forward
/// and backward.
RandomStep sliced_chain(int layers, int slices) {
  const ir::Shape shape{4096};
  RandomStep step;
  const auto add = [&](ir::OpKind kind, ir::Phase phase, const std::string& name,
                       const LongVector<ir::TensorId>& inputs) {
    const ir::TensorId made = step.graph.add_tensor(
        name, ir::DType::f32, shape, kind == ir::OpKind::input ? ir::Role::input : ir::Role::activation);
    ir::Op op;
    op.kind = kind;
    op.phase = phase;
    op.name = name;
    op.inputs = inputs;
    op.outputs = LongVector<ir::TensorId>{made};
    step.graph.add_op(std::move(op));
    step.scratch_bytes.push_back(0);
    return made;
  };
  LongVector<LongVector<ir::TensorId>> values(static_cast<std::size_t>(layers) + 1);
  for (int l = 0; l <= layers; ++l) {
    auto& made = values[static_cast<std::size_t>(l)];
    for (int k = 0; k < slices; ++k) {
      const std::string name = "y" + std::to_string(l) + "." + std::to_string(k);
      made.push_back(l == 0 ? add(ir::OpKind::input, ir::Phase::forward, name, {})
                            : add(ir::OpKind::conv, ir::Phase::forward, name,
                                  {values[static_cast<std::size_t>(l) - 1][static_cast<std::size_t>(k)]}));
    }
  }
  LongVector<ir::TensorId> gradients = values.back();
  for (int l = layers - 1; l >= 0; --l) {
    for (std::size_t k = 0; k < gradients.size(); ++k)
      gradients[k] = add(ir::OpKind::conv, ir::Phase::backward, "d" + std::to_string(l),
                         {gradients[k], values[static_cast<std::size_t>(l)][k]});
  }
  return step;
}

/// With so much space for each slice, `auto` plans however many slices there are: what is made on the way to
/// another value does not go to the tier in place of what was dropped.
TEST(TierDrops, SpaceGrowsNoFasterThanTheBatch) {
  constexpr int kLayers = 10;
  for (const int slices : {48, 96, 192}) {
    const RandomStep step = sliced_chain(kLayers, slices);
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kNoLimit, 256));
    const std::int64_t one = problem.storages.front().footprint_bytes;
    const Profile profile = random_profile(problem, 1, 1e9);
    problem.budget_bytes = 32 * one;
    problem.tier_bytes = 4 * slices * one;
    PlanOptions options;
    options.policy = PolicyKind::automatic;
    options.profile = &profile;
    const Plan plan = make_plan(problem, options);
    EXPECT_LE(plan.summary.tier_bytes, problem.tier_bytes);
    EXPECT_GT(plan.summary.recomputed, 0);
  }
}

/// Reading what a value is made of counts, unless that is in use about then; the dearer transfers are, the
/// more.
TEST(TierDrops, KnowWhatTheirSourcesCost) {
  for (const int slices : {4, 48}) {
    const RandomStep step = sliced_chain(6, slices);
    Problem problem = make_problem(step.graph, step.scratch_bytes, grain_rule(kNoLimit, 256));
    const Profile profile = random_profile(problem, 1, 1e9);
    Recomputer recomputer(problem, Recomputer::kHoldLittle);
    const LongVector<Droppable> droppable = find_droppable(problem, profile, recomputer, DropGaps::all);
    ASSERT_FALSE(droppable.empty());
    // The last layer's input is read by the op itself that wants its output again.
    const auto far = std::count_if(droppable.begin(), droppable.end(), [](const Droppable& gap) {
      return gap.source_seconds == gap.read_seconds;
    });
    const auto near = std::count_if(droppable.begin(), droppable.end(),
                                    [](const Droppable& gap) { return gap.source_seconds == 0; });
    EXPECT_EQ(far + near, static_cast<std::ptrdiff_t>(droppable.size()));
    EXPECT_EQ(far > near, slices > kLongGap);
    EXPECT_TRUE(slices > kLongGap || far == 0);
  }
  Droppable reads, computes;
  reads.seconds = 0.1;
  reads.source_seconds = 2;
  computes.seconds = 0.5;
  for (Droppable* gap : {&reads, &computes}) {
    gap->read_seconds = gap->write_seconds = 1;
    gap->from = gap->to = 0;
  }
  LongVector<Droppable> sorted{computes, reads};
  sort_by_cost(sorted, {{0.01}, {0.01}});
  EXPECT_EQ(sorted.front().seconds, reads.seconds);
  sort_by_cost(sorted, {{1}, {1}});
  EXPECT_EQ(sorted.front().seconds, computes.seconds);
}

}  // namespace
}  // namespace penstock::plan
