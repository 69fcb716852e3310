#include "session/division.h"

#include <algorithm>

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
  // What is resident is not counted a second time.
  division.beside["margin"] = std::max(kLeastMarginBytes, kMarginBytes - shares.touched_bytes);
  if (shares.planner_bytes > 0 && shares.planner_bytes <= shares.budget_bytes / kPlannerShare)
    division.beside["planner"] = shares.planner_bytes;
  std::erase_if(division.beside, [](const auto& tag) { return tag.second == 0; });
  return division;
}

std::int64_t planner_guess_bytes(std::int64_t ops, std::int64_t storages) {
  constexpr std::int64_t kBytesEach = 4 * kKiB;
  return 2 * kMiB + (ops + storages) * kBytesEach;
}

}  // namespace penstock::session
