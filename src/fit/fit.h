#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/long_vector.h"
#include "fit/division.h"
#include "fit/pool_model.h"
#include "fit/storage_map.h"
#include "lower/lower.h"
#include "penstock/options.h"
#include "plan/make_plan.h"
#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/profile.h"
#include "plan/simulator.h"

namespace penstock::fit {

// The words. A *problem* is what has to be planned. A *policy* makes a *plan* of it: instructions for one
// step. A *pool model* says what a plan costs in a kind of pool, a *layout* where everything lies there. A
// *fit* is all of that for one budget: the step as it will run.

/// The steps of one program: they share a numbering of storages. Either may be missing.
struct Steps {
  const lower::Executable* training = nullptr;
  const lower::Executable* evaluation = nullptr;

  LongVector<const lower::Executable*> all() const;
};

/// What a step is to be fitted into, and how.
struct Request {
  Division division;
  std::optional<plan::PolicyKind> policy;  ///< none: keep where all fits, else automatic
  std::optional<PoolKind> pool;            ///< none: whichever has the faster plan
  /// For all that is ever on the tier. With a limit, a budget may be refused though a smaller one is not.
  std::int64_t tier_bytes = plan::kNoLimit;
  plan::LmsOptions lms;
  plan::WindowOptions window;
};

/// A step with the plan that it runs by. The executable must outlive it.
struct FittedStep {
  plan::Problem problem;           ///< without ops and storages where those were given up (shed_problems)
  plan::Plan plan;                 ///< proved, with offsets where the pool wants them
  bool swaps_only_placed = false;  ///< planned again: what had no extent then is not swappable
};

/// Steps fitted into a budget. Plain data: nothing is allocated yet.
struct Fit {
  Division division;
  plan::PolicyKind policy = plan::PolicyKind::keep;  ///< the one that was taken
  StorageMap map;                                    ///< with an extent for what any plan swaps
  std::shared_ptr<const PoolModel> pool;
  PoolSize size;  ///< of the pool
  std::int64_t given_bytes =
      0;  ///< what plans were made for: a pool that leaves gaps needs more than it gives
  std::int64_t in_memory_bytes = 0;  ///< of the whole process, if everything stayed
  std::optional<FittedStep> training, evaluation;
  std::optional<plan::Profile> profile;        ///< of the training step, where one was given
  std::optional<plan::Simulation> prediction;  ///< of the training step, where there is a profile

  std::int64_t pool_bytes() const { return size.pool_bytes; }
  double predicted_seconds() const { return prediction ? prediction->step_seconds : 0; }
};

/// A limit on the tier's space that some plan of the steps could reach; one that none can is no limit, and
/// planning need not look at it.
std::int64_t limit_that_counts(const Steps& steps, std::int64_t tier_bytes);

/// A fit that says whether the budget can hold the steps: by the policy that was asked for, or by one that
/// plans at once whatever that one can. Throws plan::BudgetError with the smallest budget that works: any
/// budget from that one up works too.
Fit first_fit(const Steps& steps, const Request& request);

/// The best fit that the policy finds. `profile`: measured or estimated times of the training step; null
/// where the policy asks for none. Throws plan::BudgetError as first_fit() does.
Fit best_fit(const Steps& steps, const Request& request, const plan::Profile* profile);

/// Whether best_fit() would do better with a profile than first_fit() did.
bool wants_profile(const Steps& steps, const Fit& first);

/// Another fit of the training step for the pool and the tier of `now`, from a newer profile: only what has
/// an extent is swapped, and state stays where it is, in memory between steps and on the tier. Throws
/// plan::BudgetError where there is none.
Fit refit(const Steps& steps, const Fit& now, const plan::Profile& profile);

/// Gives all that the fit's plans have on the tier a place there, the same in each (plan::place_on_tier),
/// proves them again, and returns how large the tier must be.
std::int64_t place_plans(Fit& fit, std::span<const std::int64_t> fixed = {});

/// What was predicted, and as much more as kernels are slower in its pool than in one that never moves.
double judged_seconds(const Fit& fit);

/// Says what the training step would take by this profile.
void predict(const Steps& steps, Fit& fit, const plan::Profile& profile);

/// Gives up what the problems have for each op and storage, which nobody asks for while a step runs.
void shed_problems(Fit& fit);
/// Makes it anew.
void restore_problems(const Steps& steps, Fit& fit);
/// The training step's problem, made anew where it was given up.
plan::Problem training_problem(const Steps& steps, const Fit& fit);

/// What the whole process takes if everything stays in memory.
std::int64_t in_memory_bytes(const Steps& steps, const Request& request);

}  // namespace penstock::fit
