#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/bytes.h"
#include "fit/division.h"
#include "penstock/options.h"

namespace penstock::session {

/// The process's own share differs a little from run to run; a budget that is advised has so much more.
inline constexpr std::int64_t kUnsteadyBytes = 6 * kMiB;
/// What the process takes beside code, kernels, pool and buffers, none of it touched when the budget is
/// divided: thread stacks, heap growth, page tables, the kernel's side of the I/O.
inline constexpr std::int64_t kMarginBytes = 20 * kMiB;
/// So much of it stays, however much of what it is for has been touched already.
inline constexpr std::int64_t kLeastMarginBytes = 10 * kMiB;
/// Memory to plan again with is set aside only up to this share of the budget.
inline constexpr std::int64_t kPlannerShare = 8;

/// What is known when a budget is divided, all of it measured or computed elsewhere.
struct Shares {
  std::int64_t budget_bytes = 0;
  BudgetScope scope = BudgetScope::process;
  std::int64_t resident_bytes = 0;         ///< of the process, with the program in it
  std::int64_t resident_before_bytes = 0;  ///< of the process, before the session began
  std::int64_t touched_bytes = 0;          ///< of these, what the margin is for and kernels have touched
  std::int64_t conversion_bytes = 0;       ///< to read state that kernels keep in a layout of their own
  std::int64_t output_bytes = 0;           ///< what steps give back to the caller
  std::int64_t rank_bytes = 0;             ///< by which talking to other ranks will grow
  std::int64_t plan_bytes = 0;             ///< what the plan will take, where it is not resident already
  std::int64_t description_bytes = 0;  ///< what of the step's description may be resident, where it is paged
  std::int64_t planner_bytes = 0;      ///< to plan again with; 0: none is set aside
  std::map<std::string, std::int64_t> reserved_bytes;  ///< what the caller will take
};

/// The budget, and what of it the pool does not get, by tag.
fit::Division divide(const Shares& shares);

/// How much of paged memory may be resident within a budget.
std::int64_t most_paged_bytes(std::int64_t budget_bytes);

/// What something takes, for each op and storage of a step.
struct StepBytes {
  std::int64_t heap = 0;
  std::int64_t paged = 0;  ///< in vectors so long that they are paged, where there is paged memory

  std::int64_t all() const { return heap + paged; }
};

/// What a plan takes as long as a session runs by it, with what is noted of each step: a guess from the size
/// of what is planned. `states`: parameters, their moments and buffers, which are known by name as well.
/// `records`: all events of steps are kept, for a report.
StepBytes plan_guess(std::int64_t ops, std::int64_t storages, std::int64_t states = 0, bool records = false);

/// What noting a step's times and where each storage is takes, once a plan of so many instructions is there.
StepBytes running_guess(std::int64_t ops, std::int64_t storages, std::int64_t states,
                        std::int64_t instructions, bool records = false);

/// What planning again takes for a while, with the plan in use beside it: a guess from the size of what is
/// planned.
std::int64_t planner_guess_bytes(std::int64_t ops, std::int64_t storages);

/// What the first plan takes to make, when there is no pool yet: by a search, and by one walk over the step.
StepBytes search_guess(std::int64_t ops, std::int64_t storages);
StepBytes walk_guess(std::int64_t ops, std::int64_t storages);

}  // namespace penstock::session
