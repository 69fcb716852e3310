#pragma once

#include <vector>

#include "memory/virtual_pool.h"
#include "plan/checker.h"
#include "plan/policies.h"
#include "run/toy.h"

namespace penstock::report {

/// A random step planned by `window` within a tight pool and run for real, with a trace of each step.
struct TracedStep {
  explicit TracedStep(std::uint64_t seed, int steps = 2)
      : executable(run::toy_executable(plan::random_step(seed, {.layers = 8, .max_elements = 16 * 1024}))) {
    const lower::Executable* const all[] = {&executable};
    map = fit::map_slots(all);
    const plan::Problem roomy = run::make_problem(executable, map, std::int64_t{1} << 26);
    const std::int64_t keep = plan::keep_bytes(roomy) + roomy.fixed_bytes;
    problem = run::make_problem(executable, map, keep);
    // The smallest that works, and a little more.
    problem.budget_bytes = plan::smallest_bytes(problem) * 5 / 4;
    plan = plan::plan_window(problem);
    plan::prove(problem, plan);
    const plan::Plan* const plans[] = {&plan};
    fit::map_extents(map, plans);
    run::LazyTier tier(map.extents());
    VirtualPool pool(map.slot_bytes, VirtualPoolRule(keep), problem.budget_bytes + problem.fixed_bytes);
    run::Executor executor(pool, map, &tier);
    run::fill_state(executor, executable);
    for (int i = 0; i < steps; ++i) {
      traces.emplace_back();
      traces.back().origin_seconds = traces.front().origin_seconds;
      executor.set_trace(&traces.back());
      kernels::StepContext context;
      context.step = static_cast<std::uint64_t>(i);
      stats.push_back(executor.run(executable, plan, context));
    }
  }

  lower::Executable executable;
  fit::StorageMap map;
  plan::Problem problem;
  plan::Plan plan;
  std::vector<run::Trace> traces;
  std::vector<StepStats> stats;
};

}  // namespace penstock::report
