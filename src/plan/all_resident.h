#pragma once

#include "plan/plan_builder.h"

namespace penstock::plan {

/// For policies that keep all state in memory: a builder at the problem's boundary that has brought all state
/// in.
PlanBuilder begin_with_state_resident(const Problem& problem);
/// Moves the state back to the given boundary, if there is one.
void end_with_state_resident(const Problem& problem, PlanBuilder& builder);

}  // namespace penstock::plan
