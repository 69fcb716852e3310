#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace penstock::plan {

/// What the storages that a plan ever has on the tier take there.
std::int64_t tier_bytes(const Problem& problem, const Plan& plan);

/// The problem without a limit on the tier, where only so many of the storages that the plan has on the tier
/// may be swapped as keep the limit: state first, because nothing else can be done with it, then what lies
/// idle longest for its size. What is left must be kept or computed again.
Problem within_tier(const Problem& problem, const Plan& plan);

}  // namespace penstock::plan
