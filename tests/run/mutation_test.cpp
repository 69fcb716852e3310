#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "memory/virtual_pool.h"
#include "plan/checker.h"
#include "plan/make_plan.h"
#include "run/executor.h"
#include "run/pool_rule.h"
#include "run/toy.h"

namespace penstock::run {
namespace {

/// Damages plans on purpose: what the checker lets through must still give the same bits, on a tier that
/// punishes every use of a buffer that is being moved.
class Mutations : public testing::Test {
 protected:
  void prepare(std::uint64_t seed) {
    step_ = toy_executable(plan::random_step(seed, {4, 4096, true}));
    const lower::Executable* const all[] = {&step_};
    map_ = map_slots(all);
    const plan::Problem roomy = make_problem(step_, map_, std::int64_t{1} << 24);
    const std::int64_t budget = (3 * plan::smallest_bytes(roomy) + plan::keep_bytes(roomy)) / 4;
    capacity_ = budget + virtual_pool_rule(map_, budget).fixed_bytes;
    problem_ = make_problem(step_, map_, capacity_);
    plan_ = plan::make_plan(problem_, {});
    map_.extent.assign(map_.extent.size(), -1);
    map_.extent_bytes.clear();
    const plan::Plan* const plans[] = {&plan_};
    map_extents(map_, plans);
    expected_ = run(plan_);
  }

  std::uint64_t run(const plan::Plan& plan) const {
    VirtualPool pool(map_.slot_bytes, capacity_, true);
    LazyTier tier(map_.extent_bytes);
    Executor executor(pool, map_, &tier);
    fill_state(executor, step_);
    std::uint64_t digest = 0;
    for (std::uint64_t i = 0; i < 2; ++i) {
      kernels::StepContext context;
      context.step = i;
      executor.run(step_, plan, context);
      digest = mix(digest, std::bit_cast<std::uint32_t>(executor.result_f32(step_.graph.loss)));
    }
    return mix(digest, state_digest(executor, step_));
  }

  void judge(const plan::Plan& mutant, const std::string& what) {
    if (!plan::check(problem_, mutant).ok) {
      ++rejected_;
      return;
    }
    ++accepted_;
    EXPECT_EQ(run(mutant), expected_) << what;
  }

  lower::Executable step_;
  StorageMap map_;
  std::int64_t capacity_ = 0;
  plan::Problem problem_;
  plan::Plan plan_;
  std::uint64_t expected_ = 0;
  int rejected_ = 0, accepted_ = 0;
};

TEST_F(Mutations, EveryDroppedInstructionIsMissed) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    prepare(seed);
    for (std::size_t i = 0; i < plan_.instructions.size(); ++i) {
      plan::Plan mutant = plan_;
      mutant.instructions.erase(mutant.instructions.begin() + static_cast<std::ptrdiff_t>(i));
      judge(mutant, "seed " + std::to_string(seed) + " dropped " + std::to_string(i));
    }
  }
  EXPECT_EQ(accepted_, 0);
  EXPECT_GT(rejected_, 500);
}

TEST_F(Mutations, SwappedNeighboursAreRejectedOrHarmless) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    prepare(seed);
    for (std::size_t i = 0; i + 1 < plan_.instructions.size(); ++i) {
      plan::Plan mutant = plan_;
      std::swap(mutant.instructions[i], mutant.instructions[i + 1]);
      judge(mutant, "seed " + std::to_string(seed) + " swapped " + std::to_string(i));
    }
  }
  EXPECT_GT(rejected_, 60);
  EXPECT_GT(accepted_, 30);
}

TEST_F(Mutations, MovedAndChangedInstructionsAreRejectedOrHarmless) {
  plan::Dice dice(99);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    prepare(seed);
    const auto count = static_cast<std::int64_t>(plan_.instructions.size());
    for (int round = 0; round < 300; ++round) {
      plan::Plan mutant = plan_;
      const auto from = mutant.instructions.begin() + dice.below(count);
      const auto to = mutant.instructions.begin() + dice.below(count);
      switch (dice.below(4)) {
        case 0:
          from < to ? std::rotate(from, from + 1, to + 1) : std::rotate(to, from, from + 1);
          break;
        case 1:
          mutant.instructions.insert(to, plan::Instruction(*from));
          break;
        case 2:
          from->id =
              static_cast<std::int32_t>(dice.below(static_cast<std::int64_t>(problem_.storages.size())));
          break;
        default:
          from->action = static_cast<plan::Action>(dice.below(6));
          break;
      }
      judge(mutant, "seed " + std::to_string(seed) + " round " + std::to_string(round));
    }
  }
  EXPECT_GT(rejected_, 1000);
  EXPECT_GT(accepted_, 20);
}

}  // namespace
}  // namespace penstock::run
