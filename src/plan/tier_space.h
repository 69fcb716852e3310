#pragma once

#include <cstdint>

#include "plan/plan.h"
#include "plan/problem.h"

namespace penstock::plan {

/// What the places take that a plan's storages get on the tier (tier_places.h).
std::int64_t tier_bytes(const Problem& problem, const Plan& plan);

/// The problem without a limit on the tier, where only so many of the storages that the plan has on the tier
/// may be swapped that they are never more than `space_bytes` together: state first, because nothing else can
/// be done with it, then what lies idle longest for its size. What is left must be kept or computed again.
Problem within_tier(const Problem& problem, const Plan& plan, std::int64_t space_bytes);

}  // namespace penstock::plan
