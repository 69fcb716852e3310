#pragma once

#include <optional>

#include "fit/storage_map.h"
#include "lower/lower.h"
#include "plan/problem.h"

namespace penstock::fit {

/// What is to be planned: a step whose storages take what the rule says, with the step's variants where it
/// has any and with all that its kernels may write over. `boundary`: see plan::Problem.
plan::Problem step_problem(const lower::Executable& step, const StorageMap& map, const plan::PoolRule& rule,
                           const std::optional<plan::Boundary>& boundary = std::nullopt);

}  // namespace penstock::fit
