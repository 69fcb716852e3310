#include <gtest/gtest.h>

#include "base/error.h"
#include "memory/virtual_pool.h"
#include "plan/make_plan.h"
#include "run/executor.h"
#include "run/toy.h"
#include "tier/make_tier.h"

namespace penstock::run {
namespace {

std::uint64_t run_steps(const lower::Executable& step, const StorageMap& map, std::int64_t capacity,
                        const plan::Plan& plan, Tier* tier) {
  VirtualPool pool(map.slot_bytes, capacity, true);
  Executor executor(pool, map, tier);
  fill_state(executor, step);
  for (std::uint64_t i = 0; i < 3; ++i) {
    kernels::StepContext context;
    context.step = i;
    executor.run(step, plan, context);
  }
  return state_digest(executor, step);
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
        const MadeTier made = make_tier(options, map.extent_bytes);
        EXPECT_EQ(run_steps(step, map, capacity, plan, made.tier.get()), expected)
            << made.description << " seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace penstock::run
