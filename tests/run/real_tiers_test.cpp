#include <gtest/gtest.h>

#include "base/error.h"
#include "fit/step_problem.h"
#include "memory/virtual_pool.h"
#include "plan/checker.h"
#include "plan/excursions.h"
#include "plan/make_plan.h"
#include "plan/random_profile.h"
#include "plan/tier_places.h"
#include "run/executor.h"
#include "run/toy.h"
#include "tier/faulty_tier.h"
#include "tier/make_tier.h"

namespace penstock::run {
namespace {

std::uint64_t run_steps_in(Pool& pool, const lower::Executable& step, const StorageMap& map,
                           const plan::Plan& plan, Tier* tier) {
  Executor executor(pool, map, tier, plan.homes);
  fill_state(executor, step);
  for (std::uint64_t i = 0; i < 3; ++i) {
    kernels::StepContext context;
    context.step = i;
    executor.run(step, plan, context);
  }
  return state_digest(executor, step);
}

std::uint64_t run_steps(const lower::Executable& step, const StorageMap& map, std::int64_t capacity,
                        const plan::Plan& plan, Tier* tier) {
  VirtualPool pool(map.slot_bytes, capacity, true);
  return run_steps_in(pool, step, map, plan, tier);
}

TEST(RealTiers, GiveTheSameBits) {
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    const lower::Executable step = toy_executable(plan::random_step(seed, {8, 16384, true}));
    const lower::Executable* const all[] = {&step};
    StorageMap map = map_slots(all);
    const plan::Problem roomy = make_problem(step, map, std::int64_t{1} << 24);
    const std::int64_t smallest = plan::smallest_bytes(roomy), in_memory = plan::keep_bytes(roomy);
    plan::PlanOptions keep;
    keep.policy = plan::PolicyKind::keep;
    const std::uint64_t expected =
        run_steps(step, map, std::int64_t{1} << 24, plan::make_plan(roomy, keep), nullptr);
    for (const std::int64_t budget : {smallest, (smallest + in_memory) / 2}) {
      const std::int64_t capacity = budget + virtual_pool_rule(map, budget).fixed_bytes;
      const plan::Plan plan = plan::make_plan(make_problem(step, map, capacity), {});
      const plan::Plan* const plans[] = {&plan};
      map_extents(map, plans);
      for (const TierKind kind : {TierKind::ram, TierKind::disk, TierKind::disk_threads}) {
        TierOptions options;
        options.kind = kind;
        options.swap_dir = PENSTOCK_BINARY_DIR;
        options.verify = VerifyMode::full;
        const MadeTier made = make_tier(options, map.extents());
        EXPECT_EQ(run_steps(step, map, capacity, plan, made.tier.get()), expected)
            << made.description << " seed " << seed;
      }
    }
  }
}

/// Storages that are on the tier at different times lie at the same place there: with plans of all policies,
/// in both pools, on a tier that starts requests as late as it may, no bit changes.
TEST(RealTiers, SharedPlacesChangeNoBit) {
  int runs = 0, shared = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const lower::Executable step = toy_executable(plan::random_step(seed, {8, 16384, true}));
    const lower::Executable* const all[] = {&step};
    StorageMap map = map_slots(all);
    const plan::Problem roomy = make_problem(step, map, std::int64_t{1} << 24);
    const plan::Profile profile = plan::random_profile(roomy, seed, 3e7);
    plan::PlanOptions options;
    options.policy = plan::PolicyKind::keep;
    const std::uint64_t expected =
        run_steps(step, map, std::int64_t{1} << 24, plan::make_plan(roomy, options), nullptr);
    const std::int64_t budget = (3 * plan::smallest_bytes(roomy) + plan::keep_bytes(roomy)) / 4;
    for (const plan::PolicyKind policy : plan::all_policies()) {
      for (const bool packed : {false, true}) {
        options.policy = policy;
        options.profile = &profile;
        const std::shared_ptr<const fit::PoolModel> model =
            packed ? fit::make_packed_model(map) : fit::make_virtual_model(map, std::int64_t{1} << 20);
        plan::Problem problem =
            fit::step_problem(step, map, model->rule(budget + model->rule(0).fixed_bytes));
        plan::Plan plan;
        try {
          plan = plan::make_plan(problem, options);
        } catch (const UserError&) {
          // Not all policies can do with so little. What keeps everything makes excursions instead.
          if (policy != plan::PolicyKind::keep) continue;
          problem.budget_bytes = plan::keep_bytes(problem) + (1 << 20);
          plan = plan::plan_keep(problem);
          plan::add_excursions(problem, plan);
          const plan::SolvedProblem solved{&problem, &plan};
          plan.places = plan::place_on_tier({&solved, 1}).offsets;
          plan::prove(problem, plan);
        }
        const plan::Plan* const plans[] = {&plan};
        map_extents(map, plans);
        std::int64_t apart = 0;
        for (const std::int64_t bytes : map.extent_bytes) apart += plan::place_bytes(bytes);
        shared += map.tier_bytes < apart ? 1 : 0;
        TierOptions tier;
        tier.kind = TierKind::ram;
        tier.verify = VerifyMode::full;
        tier.wrap = [&](std::unique_ptr<Tier> inner) {
          FaultyTierOptions late;
          late.random_order = true;
          late.seed = seed;
          return std::make_unique<FaultyTier>(std::move(inner), late);
        };
        const MadeTier made = make_tier(tier, map.extents());
        const fit::PlannedStep steps[] = {{&step, &problem, &plan}};
        const fit::Layout layout = model->lay_out(steps, {});
        plan.offsets = layout.offsets.front();
        plan.homes = layout.homes;
        const std::unique_ptr<Pool> pool = poisoned_pool(map, *model, layout.size);
        ++runs;
        EXPECT_EQ(run_steps_in(*pool, step, map, plan, made.tier.get()), expected)
            << plan.policy << " seed " << seed;
      }
    }
  }
  EXPECT_GT(runs, 30);
  EXPECT_GT(shared, 10);
}

}  // namespace
}  // namespace penstock::run
