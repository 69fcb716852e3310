#pragma once

#include <string>

#include "plan/plan.h"
#include "plan/problem.h"

namespace penstock::plan {

/// The plan as JSON, with names beside the numbers for whoever reads it:
/// {"version": 1, "policy": P, "graph": G, "ops": N, "storages": N, "budget_bytes": N, "summary":
/// {"peak_bytes": N,
///  "swapped_out_bytes": N, "swapped_in_bytes": N, "runs": N, "recomputed": N},
///  "boundary": [{"storage": S, "name": T, "resident": B, "on_tier": B, "pending": "none"|"read"|"write"},
///  ...], "instructions": [["acquire"|"swap_out"|"swap_in"|"wait"|"release", S, name] | ["run", OP, name,
///  variant], ...]}
std::string plan_to_json(const Problem& problem, const Plan& plan);

/// Reads a plan back; the names in it are not looked at. Throws UserError that names `source` if it is none,
/// or is one for another graph. Whether it is right is the checker's matter.
Plan plan_from_json(const Problem& problem, const std::string& text, const std::string& source);

}  // namespace penstock::plan
