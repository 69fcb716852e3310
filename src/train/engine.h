#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "memory/budget.h"
#include "memory/packed_pool.h"
#include "memory/pool.h"
#include "plan/plan.h"
#include "run/executor.h"
#include "run/storage_map.h"
#include "tier/make_tier.h"
#include "train/memory_plan.h"
#include "train/program.h"

namespace penstock::training {

/// How an engine gets its tier: make_tier(), or what a test puts in its place.
using TierMaker =
    std::function<MadeTier(const TierOptions& options, const std::vector<std::int64_t>& extent_bytes)>;

/// What the options say of the tier. Throws UserError.
TierOptions tier_options(const Options& options);

/// A program with the memory to run it: the plans that fit the budget, the pool, the tier, the executor. The
/// program must outlive it. One thread calls it.
class Engine {
 public:
  /// Takes the memory and the tier's space. Throws UserError if they are not to be had.
  Engine(const Program& program, const Options& options, MemoryPlan memory_plan,
         const TierMaker& tier_maker = make_tier);

  run::Executor& executor() { return *executor_; }
  run::StepStats train_step(const kernels::StepContext& context);
  run::StepStats evaluate_step(const kernels::StepContext& context);

  /// From the next step on.
  void replace_plan(PlannedAgain plan);
  /// What is known of times now.
  void replace_profile(const plan::Profile& profile, double predicted_step_seconds);
  void set_trace(run::Trace* trace) { executor_->set_trace(trace); }
  /// All zero where there is no tier.
  TierStats tier_stats() const { return tier_ ? tier_->stats() : TierStats{}; }

  const MemoryPlan& memory_plan() const { return memory_plan_; }
  const Pool& pool() const { return *pool_; }
  const std::vector<std::string>& notes() const { return notes_; }
  const std::string& tier_description() const { return tier_description_; }
  std::int64_t swap_bytes() const;
  const Budget& budget() const { return budget_; }

 private:
  const Program& program_;
  MemoryPlan memory_plan_;
  Budget budget_;
  std::vector<Reservation> reservations_;
  std::unique_ptr<Pool> pool_;
  PackedPool* packed_pool_ = nullptr;  // pool_, where it is one
  std::unique_ptr<Tier> tier_;
  std::unique_ptr<run::Executor> executor_;
  std::vector<std::string> notes_;
  std::string tier_description_ = "none";
};

}  // namespace penstock::training
