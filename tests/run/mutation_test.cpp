#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "memory/virtual_pool.h"
#include "plan/checker.h"
#include "plan/damage.h"
#include "plan/make_plan.h"
#include "plan/random_profile.h"
#include "run/executor.h"
#include "run/toy.h"

namespace penstock::run {
namespace {

/// A virtual pool that rounds as the smallest do.
constexpr std::int64_t kRounding = std::int64_t{1} << 20;

/// Damages plans on purpose: what the checker lets through must still give the same bits, on a tier that
/// punishes every use of a buffer that is being moved.
class Mutations : public testing::Test {
 protected:
  void prepare(const lower::Executable& step, const plan::PlanOptions& options = {}, bool packed = false) {
    step_ = step;
    const lower::Executable* const all[] = {&step_};
    map_ = map_slots(all);
    pool_ = packed ? fit::make_packed_model(map_) : fit::make_virtual_model(map_, kRounding);
    const plan::Problem roomy = problem_of(kPlenty);
    std::int64_t budget = (3 * plan::smallest_bytes(roomy) + plan::keep_bytes(roomy)) / 4;
    if (options.policy != plan::PolicyKind::automatic)
      budget = std::max(budget, plan::smallest_budget(roomy, options));
    problem_ = problem_of(budget + roomy.fixed_bytes);
    plan_ = plan::make_plan(problem_, options);
    expected_.clear();
    ASSERT_EQ(run(plan_), expected(plan_)) << plan_.policy;
  }

  plan::Problem problem_of(std::int64_t capacity_bytes) const {
    return fit::step_problem(step_, map_, pool_->rule(capacity_bytes));
  }

  std::uint64_t run(const plan::Plan& given) {
    plan::Plan plan = given;
    const plan::Plan* const plans[] = {&plan};
    map_extents(map_, plans);
    const fit::PlannedStep steps[] = {{&step_, &problem_, &plan}};
    const fit::Layout layout = pool_->lay_out(steps, {});
    plan.offsets = layout.offsets.front();
    plan.homes = layout.homes;
    return run_in(*poisoned_pool(map_, *pool_, layout.size), plan);
  }

  std::uint64_t run_in(Pool& pool, const plan::Plan& plan) const {
    LazyTier tier(map_.extents());
    Executor executor(pool, map_, &tier, plan.homes);
    fill_state(executor, step_);
    std::uint64_t digest = 0;
    for (std::uint64_t i = 0; i < 2; ++i) {
      kernels::StepContext context;
      context.step = i;
      context.take = [&](int, const void* loss) {
        digest = mix(digest, *static_cast<const std::uint32_t*>(loss));
      };
      executor.run(step_, plan, context);
    }
    return mix(digest, state_digest(executor, step_));
  }

  /// What the plan's kernels give in plenty of memory, all ops once and in order.
  std::uint64_t expected(const plan::Plan& plan) {
    std::vector<std::int32_t> variants(step_.graph.ops.size(), -1);
    for (const plan::Instruction& in : plan.instructions) {
      if (in.action != plan::Action::run) continue;
      std::int32_t& variant = variants[static_cast<std::size_t>(in.id)];
      if (variant < 0) variant = in.variant;
    }
    const auto [found, is_new] = expected_.try_emplace(variants, 0);
    if (!is_new) return found->second;
    plan::Plan keep = plan::plan_keep(make_problem(step_, map_, kPlenty));
    for (plan::Instruction& in : keep.instructions) {
      if (in.action == plan::Action::run) in.variant = variants[static_cast<std::size_t>(in.id)];
    }
    VirtualPool pool(map_.slot_bytes, kPlenty, true);
    return found->second = run_in(pool, keep);
  }

  void judge(const plan::Plan& mutant, const std::string& what) {
    if (!plan::check(problem_, mutant).ok) {
      ++rejected_;
      return;
    }
    ++accepted_;
    EXPECT_EQ(run(mutant), expected(mutant)) << what;
  }

  lower::Executable step_;
  StorageMap map_;
  std::shared_ptr<const fit::PoolModel> pool_;
  plan::Problem problem_;
  plan::Plan plan_;
  std::map<std::vector<std::int32_t>, std::uint64_t> expected_;  ///< by the ops' variants
  int rejected_ = 0, accepted_ = 0;
};

lower::Executable small_step(std::uint64_t seed) {
  return toy_executable(plan::random_step(seed, {4, 4096, true}));
}

/// Of all policies, in both pools, with several kernels an op, exchanges with other ranks, and kernels that
/// can and cannot write over what they read.
TEST_F(Mutations, PlansOfAllPoliciesInBothPools) {
  int plans = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    ToyOptions toy;
    toy.variants = seed % 2 == 0;
    toy.overwrite_each = 1 + static_cast<int>(seed % 3);
    const lower::Executable step =
        toy_executable(plan::random_step(seed, {4, 4096, true, seed % 2 == 0, seed % 4 == 1}), toy);
    const lower::Executable* const all[] = {&step};
    const plan::Profile profile =
        plan::random_profile(make_problem(step, map_slots(all), kPlenty), seed, 2e7);
    for (const plan::PolicyKind policy : plan::all_policies()) {
      for (const bool packed : {false, true}) {
        plan::PlanOptions options;
        options.policy = policy;
        options.profile = &profile;
        prepare(step, options, packed);
        ++plans;
        plan::Dice dice(seed);
        for (int round = 0; round < 40; ++round) {
          plan::Plan mutant = plan_;
          const std::string what = plan::Damage(problem_, mutant, dice).any();
          judge(mutant, plan_.policy + (packed ? " packed" : " virtual") + " seed " + std::to_string(seed) +
                            " round " + std::to_string(round) + ": " + what);
        }
      }
    }
  }
  EXPECT_EQ(plans, 72);
  EXPECT_GT(rejected_, 1000);
  EXPECT_GT(accepted_, 100);
}

/// What those look for does show: adopted inputs that come back, other kernels and exchanges give other bits.
TEST_F(Mutations, ShowInBits) {
  using Kind = std::string (plan::Damage::*)();
  const std::pair<Kind, const char*> kinds[] = {{&plan::Damage::brought_back, "an input"},
                                                {&plan::Damage::brought_back_elsewhere, "an input"},
                                                {&plan::Damage::other_variant, "another kernel"},
                                                {&plan::Damage::other_exchange, "an exchange"}};
  std::vector<int> seen(std::size(kinds), 0);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    ToyOptions toy;
    toy.variants = true;
    toy.overwrite_each = 3;
    const lower::Executable step =
        toy_executable(plan::random_step(seed, {4, 4096, true, seed % 2 == 0, true}), toy);
    const lower::Executable* const all[] = {&step};
    const plan::Profile profile =
        plan::random_profile(make_problem(step, map_slots(all), kPlenty), seed, 1e6);
    plan::PlanOptions options;
    options.policy = plan::PolicyKind::automatic;
    options.profile = &profile;
    prepare(step, options);
    for (std::size_t k = 0; k < std::size(kinds); ++k) {
      plan::Dice dice(seed);
      for (int round = 0; round < 10; ++round) {
        plan::Plan mutant = plan_;
        const std::string what = (plan::Damage(problem_, mutant, dice).*kinds[k].first)();
        if (!what.starts_with(kinds[k].second)) continue;
        try {
          seen[k] += run(mutant) != expected(mutant) ? 1 : 0;
        } catch (const std::exception&) {
          // The executor refuses some by itself.
        }
      }
    }
  }
  for (std::size_t k = 0; k < std::size(kinds); ++k) EXPECT_GT(seen[k], 0) << k;
}

TEST_F(Mutations, EveryDroppedInstructionIsMissed) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    prepare(small_step(seed));
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
    prepare(small_step(seed));
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
    prepare(small_step(seed));
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
