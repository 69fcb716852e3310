#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fit/fit.h"
#include "memory/budget.h"
#include "memory/pool.h"
#include "run/executor.h"
#include "session/program.h"
#include "tier/make_tier.h"

namespace penstock::session {

/// A program with the memory to run it: a fit, its pool, its tier, the executor. The program must outlive it.
/// One thread calls it.
class Runner {
 public:
  /// Takes the memory and the tier's space. Throws UserError if they are not to be had.
  Runner(const Program& program, fit::Fit fit, const TierOptions& tier,
         const TierMaker& tier_maker = make_tier);

  run::Executor& executor() { return *executor_; }
  StepStats train_step(const kernels::StepContext& context);
  StepStats evaluate_step(const kernels::StepContext& context);

  /// From the next step on. The pool and the tier must be those of the fit in use; what is not state may lie
  /// elsewhere on the tier.
  void replace(fit::Fit fit);
  void set_trace(run::Trace* trace) { executor_->set_trace(trace); }
  /// All zero where there is no tier.
  TierStats tier_stats() const { return tier_ ? tier_->stats() : TierStats{}; }

  /// Without what problems have for each op and storage (fit::shed_problems).
  const fit::Fit& fit() const { return fit_; }
  const Pool& pool() const { return *pool_; }
  /// What the user should be told about the tier.
  const std::vector<std::string>& notes() const { return notes_; }
  const std::string& tier_description() const { return tier_description_; }
  const Budget& budget() const { return budget_; }

 private:
  const Program& program_;
  fit::Fit fit_;
  Budget budget_;
  std::vector<Reservation> reservations_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Tier> tier_;
  std::unique_ptr<run::Executor> executor_;
  std::vector<std::string> notes_;
  std::string tier_description_ = "none";
};

}  // namespace penstock::session
