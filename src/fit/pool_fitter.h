#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/long_vector.h"
#include "fit/fit.h"

namespace penstock::fit {

/// Fits steps into one kind of pool. Steps, request and profile must outlive it. One thread.
class PoolFitter {
 public:
  PoolFitter(const Steps& steps, const Request& request, PoolKind kind);

  /// What the pool takes if everything stays, but for gaps.
  std::int64_t keep_bytes() const { return keep_bytes_; }

  /// Some fit into `capacity_bytes`, found quickly; none: none exists, and least_bytes() is what it would
  /// take. What fits a capacity fits every larger one.
  std::optional<Fit> any(plan::PolicyKind policy, std::int64_t capacity_bytes);
  std::int64_t least_bytes() const { return least_bytes_; }
  /// Some fit into `capacity_bytes` where space on the tier is so scarce that any() finds none: by the policy
  /// that computes again what it cannot swap, which takes a while.
  std::optional<Fit> computing_again(std::int64_t capacity_bytes) const;

  /// The fit whose plan was given as much as can be of `capacity_bytes`; `fallback` where that does not fit.
  /// Its problems may be shed.
  Fit fullest(plan::PolicyKind policy, std::int64_t capacity_bytes, const plan::Profile* profile,
              const Fit& fallback);

  /// A faster fit into the same pool than one that automatic found, by a search that takes its time; none:
  /// there was none.
  std::optional<Fit> thorough(std::int64_t capacity_bytes, const plan::Profile& profile,
                              const Fit& found) const;

 private:
  std::int64_t find_keep_bytes() const;
  std::shared_ptr<const PoolModel> model(std::int64_t rounding_bytes) const;
  /// Plans for `given_bytes` and lays out. Throws BudgetError with the bytes to give.
  Fit fit(plan::PolicyKind policy, const std::shared_ptr<const PoolModel>& model, std::int64_t given_bytes,
          const plan::Profile* profile, plan::Effort effort = plan::Effort::usual) const;
  /// Plans all steps into `fit`, one after the other: each has the space on the tier that is left by those
  /// before, the first one no more than `first_tier_bytes`.
  LongVector<PlannedStep> plan_steps(Fit& fit, const plan::Profile* profile, plan::Effort effort,
                                     std::int64_t first_tier_bytes) const;
  LongVector<PlannedStep> plan_steps(Fit& fit, const plan::Profile* profile, plan::Effort effort) const;
  /// The fullest fit into a pool of this model; none: there is none.
  std::optional<Fit> fullest_of(const std::shared_ptr<const PoolModel>& pool, plan::PolicyKind policy,
                                std::int64_t capacity_bytes, const plan::Profile* profile,
                                const Fit& fallback) const;
  /// The least that the policy can be given.
  std::int64_t least_given(plan::PolicyKind policy, const PoolModel& model) const;
  /// How often something is tried: less for long steps, so that the time grows about linearly with them.
  int tries_of(int most) const;
  plan::PlanOptions plan_options(plan::PolicyKind policy) const;
  /// The times to plan by, where the policy asks for any.
  std::optional<plan::Profile> profile_of(const lower::Executable& step, const plan::Problem& problem,
                                          const plan::PlanOptions& options,
                                          const plan::Profile* profile) const;

  const Steps& steps_;
  const Request& request_;
  PoolKind kind_;
  StorageMap map_;
  std::int64_t keep_bytes_ = 0;
  std::int64_t least_bytes_ = 0;
};

}  // namespace penstock::fit
