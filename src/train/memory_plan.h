#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/profile.h"
#include "run/storage_map.h"
#include "train/program.h"

namespace penstock::training {

/// A budget larger than any machine, small enough not to overflow.
inline constexpr std::int64_t kUnlimitedBytes = std::int64_t{1} << 50;

/// What the process takes beside the pool, by tag: code and kernels, loader, buffers, a margin.
using Overhead = std::map<std::string, std::int64_t>;

/// How a program runs within a budget: which plan for each of its graphs, how large a pool. Plain data;
/// nothing is allocated yet.
struct MemoryPlan {
  std::int64_t budget_bytes = 0;
  Overhead overhead;
  std::string policy;                  ///< the one that was taken
  std::optional<plan::Plan> training;  ///< proved
  std::optional<plan::Plan> first;     ///< another of the same step: what it swaps has space on the tier too
  std::optional<plan::Plan> evaluation;  ///< proved
  run::StorageMap map;
  std::int64_t rule_bytes = 0;          ///< the capacity whose rounding rule the plans were made with
  std::int64_t capacity_bytes = 0;      ///< of the pool
  std::int64_t planned_peak_bytes = 0;  ///< of the pool, fixed bytes included
  std::int64_t in_memory_bytes = 0;     ///< the whole process without a budget
  double plan_seconds = 0;
  std::int64_t earlier_peak_bytes = 0;     ///< resident, before the kernel's mark was set back for the next:
  std::int64_t planner_bytes = 0;          ///< of memory, that planning took for a while
  std::optional<plan::Profile> profile;    ///< of the training step, where the policy was given one
  double predicted_step_seconds = 0;       ///< simulated; 0 where there is no profile
  bool packed = false;                     ///< which pool
  std::vector<std::int64_t> packed_homes;  ///< by slot: where it is between steps
  std::int64_t packed_given_bytes = 0;  ///< what plans for the packed pool are made for, less than the pool

  std::int64_t overhead_bytes() const;
};

/// Gives the profile of the program's training step. Asked only once it is known that the program fits the
/// budget, but not without a plan.
using ProfileSource = std::function<plan::Profile()>;

/// Plans a program within `budget_bytes`. Throws plan::BudgetError with the smallest budget that works. No
/// `profile`: the policies that need one get an estimate, and no time is predicted.
MemoryPlan plan_memory(const Program& program, const Options& options, std::int64_t budget_bytes,
                       const Overhead& overhead, const ProfileSource& profile = {});

/// What the whole process takes if everything stays in memory.
std::int64_t in_memory_bytes(const Program& program, const Options& options, const Overhead& overhead);

/// Whether a plan within the budget exists at all.
bool fits_memory(const Program& program, const Options& options, std::int64_t budget_bytes,
                 const Overhead& overhead);

/// Says where everything is in a packed pool, and how large that is; returns the size.
std::int64_t pack_memory(const Program& program, MemoryPlan& plan);

/// The problem that the plan of the training step solves.
plan::Problem planned_problem(const Program& program, const MemoryPlan& plan);

/// The profile, knowing how often memory moves when the training step follows its plan.
plan::Profile with_moves(const Program& program, const MemoryPlan& plan, plan::Profile profile);

/// A plan of the evaluation for the pool of `plan`, from where training leaves the state. Throws
/// plan::BudgetError.
plan::Plan plan_evaluation(const Program& program, const MemoryPlan& plan, const plan::Boundary& boundary);

/// Another plan of the training step for the pool and the tier that `now` led to, from a newer profile: only
/// what has space on the tier is swapped, and in a packed pool the state that is there stays where it is.
/// Throws plan::BudgetError where there is none.
struct PlannedAgain {
  plan::Plan training;
  std::vector<std::int64_t> packed_homes;  ///< of a packed pool
};
PlannedAgain plan_again(const Program& program, const MemoryPlan& now, const plan::Profile& profile);
/// The problem that such a plan solves.
plan::Problem problem_again(const Program& program, const MemoryPlan& now);

}  // namespace penstock::training
