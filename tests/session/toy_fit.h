#pragma once

#include "fit/fit.h"
#include "plan/budget_error.h"
#include "plan/random_profile.h"
#include "plan/random_step.h"
#include "run/toy.h"

namespace penstock::session {

/// A step that swaps, fitted by `auto` on a profile that a test may change.
struct ToyFit {
  explicit ToyFit(std::uint64_t seed, PoolKind pool = PoolKind::packed)
      : training(run::toy_executable(plan::random_step(seed, {9, 65536, true}))) {
    steps.training = &training;
    fit::Request request;
    request.pool = pool;
    request.policy = Policy::automatic;
    request.division.budget_bytes = in_between(request);
    const fit::Fit first = fit::first_fit(steps, request);
    profile = plan::random_profile(first.training->problem, seed, 1e9);
    // Ops that take as long as transfers do, so that it matters which of them a plan chooses.
    for (std::size_t op = 0; op < profile.op_seconds.size(); ++op) profile.op_seconds.set(op, 0, 1e-4);
    profile.measured = true;
    fit = fit::best_fit(steps, request, &profile);
  }

  /// Events of a step whose ops take `factor` times what the profile says.
  run::Trace events(double factor) const {
    run::Trace trace;
    double now = 0;
    std::vector<bool> ran(training.graph.ops.size(), false);
    for (const plan::Instruction& in : fit.training->plan.instructions) {
      if (in.action != plan::Action::run) continue;
      const double seconds = factor * profile.seconds(in.id);
      trace.events.push_back(
          {plan::Action::run, in.id, ran[static_cast<std::size_t>(in.id)], now, now + seconds});
      ran[static_cast<std::size_t>(in.id)] = true;
      now += seconds;
    }
    return trace;
  }

  StepStats stats(double factor) const {
    StepStats stats;
    stats.step_seconds = factor * fit.prediction->step_seconds;
    stats.compute_seconds = factor * fit.prediction->compute_seconds;
    stats.stall_seconds = factor * fit.prediction->stall_seconds;
    return stats;
  }

  lower::Executable training;
  fit::Steps steps;
  plan::Profile profile;
  fit::Fit fit;

 private:
  std::int64_t in_between(fit::Request request) const {
    const std::int64_t all = fit::in_memory_bytes(steps, request);
    try {
      fit::first_fit(steps, request);
    } catch (const plan::BudgetError& error) {
      return (error.needed_bytes() + all) / 2;
    }
    return all;
  }
};

}  // namespace penstock::session
