#pragma once

#include <cstdint>

#include "lower/lower.h"
#include "plan/problem.h"
#include "run/storage_map.h"

namespace penstock::run {

/// What a virtual pool of `capacity_bytes` over the map's slots leaves for the plan, and how it rounds.
/// `only_mapped`: only storages that have an extent may be swapped (planning again while a tier is in use).
/// `rule_bytes`: the capacity that the pool's rule of rounding is made for; 0: the same. `budget_bytes` of
/// the result is negative where small storages alone exceed the capacity.
plan::PoolRule virtual_pool_rule(const StorageMap& map, std::int64_t capacity_bytes, bool only_mapped = false,
                                 std::int64_t rule_bytes = 0);

/// The problem of a step under any rule, with the step's variants where it has any.
plan::Problem make_problem(const lower::Executable& step, const StorageMap& map, const plan::PoolRule& rule,
                           const std::optional<plan::Boundary>& boundary);

/// The problem of a step on such a pool. `boundary`: see plan::Problem.
plan::Problem make_problem(const lower::Executable& step, const StorageMap& map, std::int64_t capacity_bytes,
                           const std::optional<plan::Boundary>& boundary = std::nullopt,
                           bool only_mapped = false);

}  // namespace penstock::run
