#include "session/runner.h"

#include <utility>

#include "base/error.h"

namespace penstock::session {

Runner::Runner(const Program& program, fit::Fit fit, const TierOptions& tier, const TierMaker& tier_maker)
    : program_(program), fit_(std::move(fit)), budget_(fit_.division.budget_bytes) {
  fit::shed_problems(fit_);
  for (const auto& [tag, bytes] : fit_.division.beside) reservations_.push_back(budget_.reserve(tag, bytes));
  reservations_.push_back(budget_.reserve("pool", fit_.pool_bytes()));
  if (!fit_.map.extent_bytes.empty()) {
    MadeTier made = tier_maker(tier, fit_.map.extents());
    tier_ = std::move(made.tier);
    notes_ = std::move(made.notes);
    tier_description_ = made.description;
  }
  if (const std::string remark = fit_.pool->remark(); !remark.empty() && fit_.policy != Policy::keep) {
    notes_.push_back(remark);
  }
  pool_ = fit_.pool->make_pool(fit_.size);
  const fit::FittedStep& first = fit_.training ? *fit_.training : *fit_.evaluation;
  executor_ = std::make_unique<run::Executor>(*pool_, fit_.map, tier_.get(), first.plan.homes);
}

StepStats Runner::train_step(const kernels::StepContext& context) {
  require(program_.training != nullptr, "this program has no training step");
  return executor_->run(*program_.training, fit_.training->plan, context);
}

StepStats Runner::evaluate_step(const kernels::StepContext& context) {
  require(program_.evaluation != nullptr, "this program has no evaluation step");
  return executor_->run(*program_.evaluation, fit_.evaluation->plan, context);
}

void Runner::replace(fit::Fit fit) {
  require(
      fit.size == fit_.size && fit.map.extent == fit_.map.extent && fit.map.tier_bytes == fit_.map.tier_bytes,
      "a fit for another pool or tier");
  // The executor refers to the map, which stays where it is.
  fit_.map.extent_offset = std::move(fit.map.extent_offset);
  if (tier_) tier_->place(fit_.map.extent_offset);
  fit_.training = std::move(fit.training);
  fit_.evaluation = std::move(fit.evaluation);
  fit_.profile = std::move(fit.profile);
  fit_.prediction = std::move(fit.prediction);
  fit::shed_problems(fit_);
}

}  // namespace penstock::session
