#include "train/engine.h"

#include <numeric>

#include "base/error.h"
#include "memory/virtual_pool.h"

namespace penstock::training {

TierOptions tier_options(const Options& options) {
  TierOptions tier;
  tier.kind = parse_tier_kind(options.tier, "--tier");
  tier.swap_dir = options.swap_dir;
  tier.verify = parse_verify_mode(options.verify, "--verify");
  if (!options.tier_bandwidth.empty()) {
    tier.read_bytes_per_second = parse_bandwidth(options.tier_bandwidth, "--tier-bandwidth");
    tier.write_bytes_per_second = tier.read_bytes_per_second;
  }
  return tier;
}

Engine::Engine(const Program& program, const Options& options, MemoryPlan memory_plan,
               const TierMaker& tier_maker)
    : program_(program), memory_plan_(std::move(memory_plan)), budget_(memory_plan_.budget_bytes) {
  for (const auto& [tag, bytes] : memory_plan_.overhead) reservations_.push_back(budget_.reserve(tag, bytes));
  reservations_.push_back(budget_.reserve("pool", memory_plan_.capacity_bytes));

  std::vector<const plan::Plan*> plans;
  if (memory_plan_.training) plans.push_back(&*memory_plan_.training);
  if (memory_plan_.first) plans.push_back(&*memory_plan_.first);
  if (memory_plan_.evaluation) plans.push_back(&*memory_plan_.evaluation);
  run::map_extents(memory_plan_.map, plans);
  const TierOptions tier = tier_options(options);
  if (!memory_plan_.map.extent_bytes.empty()) {
    MadeTier made = tier_maker(tier, memory_plan_.map.extent_bytes);
    tier_ = std::move(made.tier);
    notes_ = std::move(made.notes);
    tier_description_ = made.description;
  }
  if (memory_plan_.packed) {
    auto pool = std::make_unique<PackedPool>(memory_plan_.map.slot_bytes, memory_plan_.packed_homes,
                                             memory_plan_.capacity_bytes, memory_plan_.capacity_bytes);
    packed_pool_ = pool.get();
    pool_ = std::move(pool);
  } else {
    pool_ = std::make_unique<VirtualPool>(
        memory_plan_.map.slot_bytes, VirtualPoolRule(memory_plan_.rule_bytes), memory_plan_.capacity_bytes);
  }
  executor_ = std::make_unique<run::Executor>(*pool_, memory_plan_.map, tier_.get());
}

run::StepStats Engine::train_step(const kernels::StepContext& context) {
  require(program_.training != nullptr, "this program has no training step");
  return executor_->run(*program_.training, *memory_plan_.training, context);
}

run::StepStats Engine::evaluate_step(const kernels::StepContext& context) {
  require(program_.evaluation != nullptr, "this program has no evaluation step");
  return executor_->run(*program_.evaluation, *memory_plan_.evaluation, context);
}

void Engine::replace_plan(PlannedAgain plan) {
  memory_plan_.training = std::move(plan.training);
  if (packed_pool_ == nullptr) return;
  memory_plan_.packed_homes = std::move(plan.packed_homes);
  packed_pool_->set_homes(memory_plan_.packed_homes);
}

void Engine::replace_profile(const plan::Profile& profile, double predicted_step_seconds) {
  memory_plan_.profile = profile;
  memory_plan_.predicted_step_seconds = predicted_step_seconds;
}

std::int64_t Engine::swap_bytes() const {
  const auto& extents = memory_plan_.map.extent_bytes;
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{0});
}

}  // namespace penstock::training
