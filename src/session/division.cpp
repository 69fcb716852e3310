#include "session/division.h"

#include <algorithm>

#include "run/trace.h"

namespace penstock::session {

fit::Division divide(const Shares& shares) {
  fit::Division division;
  division.budget_bytes = shares.budget_bytes;
  division.beside = shares.reserved_bytes;
  const std::int64_t before = shares.scope == BudgetScope::session ? shares.resident_before_bytes : 0;
  division.beside["program"] = std::max<std::int64_t>(0, shares.resident_bytes - before);
  division.beside["conversion"] = shares.conversion_bytes;
  division.beside["outputs"] = shares.output_bytes;
  division.beside["ranks"] = shares.rank_bytes;
  division.beside["plan"] = shares.plan_bytes;
  // What is resident is not counted a second time.
  division.beside["margin"] = std::max(kLeastMarginBytes, kMarginBytes - shares.touched_bytes);
  if (shares.planner_bytes > 0 && shares.planner_bytes <= shares.budget_bytes / kPlannerShare)
    division.beside["planner"] = shares.planner_bytes;
  std::erase_if(division.beside, [](const auto& tag) { return tag.second == 0; });
  return division;
}

std::int64_t plan_guess_bytes(std::int64_t ops, std::int64_t storages) {
  // Problem, plan and profile are some 250, the rest is where everything is while it runs, and a step's
  // events.
  constexpr std::int64_t kBytesEach = 400;
  return (ops + storages) * kBytesEach;
}

std::int64_t running_bytes(std::int64_t ops, std::int64_t storages, std::int64_t instructions) {
  constexpr std::int64_t kEvent = sizeof(run::TraceEvent), kOp = 32, kStorage = 128;
  return instructions * kEvent + ops * kOp + storages * kStorage;
}

std::int64_t search_guess_bytes(std::int64_t ops, std::int64_t storages) {
  constexpr std::int64_t kBytesEach = 1500;  // 1,330 to 1,380 were seen
  return (ops + storages) * kBytesEach;
}

std::int64_t walk_guess_bytes(std::int64_t ops, std::int64_t storages) {
  constexpr std::int64_t kBytesEach = 1150;  // up to 1,040 were seen, for two pools
  return (ops + storages) * kBytesEach;
}

std::int64_t planner_guess_bytes(std::int64_t ops, std::int64_t storages) {
  constexpr std::int64_t kBytesEach = 4 * kKiB;
  return 2 * kMiB + (ops + storages) * kBytesEach;
}

}  // namespace penstock::session
