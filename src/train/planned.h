#pragma once

#include <cstdint>
#include <string>

#include "penstock/penstock.h"
#include "plan/profile.h"
#include "train/memory_plan.h"
#include "train/program.h"

namespace penstock::training {

/// What a plan of the training step promises. `in_memory_step_seconds`: of a step that keeps everything.
PlannedBudget describe_plan(const Program& program, const MemoryPlan& plan, const plan::Profile& profile,
                            double in_memory_step_seconds, std::int64_t batch);

/// A time below which no plan of the training step for this budget can be.
double bound_seconds(const Program& program, const MemoryPlan& plan, const plan::Profile& profile);

/// The time of a step that keeps everything in memory.
double keep_seconds(const Program& program, const Options& options, const Overhead& overhead,
                    const plan::Profile& profile);

/// Times from shapes alone, with the tier as the options throttle it.
plan::Profile estimated_profile(const Program& program, const Options& options);

/// The plan as JSON, to train by later: {"version": 1, "model": M, "batch": N, "pool": "virtual"|"packed",
/// "budget_bytes": N, "overhead": {tag: bytes}, "rule_bytes": N, "capacity_bytes": N, "planned_peak_bytes":
/// N, "in_memory_bytes": N, "predicted_step_seconds": S, "training": {see plan/json.h}}.
std::string memory_plan_to_json(const Program& program, const MemoryPlan& plan, const std::string& model,
                                std::int64_t batch);

/// Reads such a plan back and proves it; evaluation, where the program has one, is planned anew from where
/// training's plan leaves the state. `budget_bytes` 0: the plan's own. Throws UserError that names `source`
/// if it is no plan, one for another program, or one that the process cannot hold within its budget.
MemoryPlan memory_plan_from_json(const Program& program, const Options& options, std::int64_t budget_bytes,
                                 const Overhead& overhead, const std::string& text,
                                 const std::string& source);

}  // namespace penstock::training
