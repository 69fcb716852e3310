#include "session/describe.h"

#include <algorithm>

#include "plan/bound.h"

namespace penstock::session {
namespace {

constexpr double kSecondsPerDay = 86400;

/// A time below which no plan of the training step for this budget can be. The pool takes no more than the
/// plan's peak, but any other plan might have had all that the budget leaves.
double bound_seconds(const fit::Fit& fit) {
  plan::Problem problem = fit.training->problem;
  problem.budget_bytes = fit.division.pool_bytes() - problem.fixed_bytes;
  return plan::lower_bound(problem, *fit.profile).seconds;
}

}  // namespace

Forecast describe(const fit::Fit& fit, BudgetScope scope, const std::string& profile_source,
                  double in_memory_seconds) {
  Forecast forecast;
  forecast.budget_bytes = fit.division.budget_bytes;
  forecast.scope = scope;
  forecast.feasible = true;
  forecast.policy = plan::policy_name(fit.policy);
  forecast.pool = fit.pool->name();
  forecast.beside_bytes = fit.division.beside;
  forecast.pool_bytes = fit.pool_bytes();
  forecast.in_memory_bytes = fit.in_memory_bytes;
  forecast.swap_file_bytes = fit.map.tier_bytes;
  forecast.profile_source = profile_source;
  if (!fit.training) return forecast;
  const plan::Summary& summary = fit.training->plan.summary;
  forecast.step.swapped_out_bytes = summary.swapped_out_bytes;
  forecast.step.swapped_in_bytes = summary.swapped_in_bytes;
  forecast.step.peak_pool_bytes = fit.pool_bytes();
  forecast.recomputed_ops = summary.recomputed;
  if (!fit.prediction) return forecast;
  const plan::Simulation& simulation = *fit.prediction;
  forecast.step.step_seconds = simulation.step_seconds;
  forecast.step.compute_seconds = simulation.compute_seconds;
  forecast.step.recompute_seconds = simulation.recompute_seconds;
  forecast.step.stall_seconds = std::max(0.0, simulation.stall_seconds);
  forecast.bound_seconds = bound_seconds(fit);
  if (simulation.step_seconds > 0) {
    forecast.in_memory_share = in_memory_seconds / simulation.step_seconds;
    forecast.written_bytes_per_day =
        static_cast<double>(summary.swapped_out_bytes) * kSecondsPerDay / simulation.step_seconds;
  }
  return forecast;
}

}  // namespace penstock::session
