#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"
#include "run/storage_map.h"
#include "train/program.h"

namespace penstock::training {

/// What the process takes beside the pool, by tag: code and kernels, loader, buffers, a margin.
using Overhead = std::map<std::string, std::int64_t>;

/// How a program runs within a budget: which plan for each of its graphs, how large a pool. Plain data;
/// nothing is allocated yet.
struct MemoryPlan {
  std::int64_t budget_bytes = 0;
  Overhead overhead;
  std::string policy;                    ///< the one that was taken
  std::optional<plan::Plan> training;    ///< proved
  std::optional<plan::Plan> evaluation;  ///< proved
  run::StorageMap map;
  std::int64_t rule_bytes = 0;          ///< the capacity whose rounding rule the plans were made with
  std::int64_t capacity_bytes = 0;      ///< of the pool
  std::int64_t planned_peak_bytes = 0;  ///< of the pool, fixed bytes included
  std::int64_t in_memory_bytes = 0;     ///< the whole process without a budget
  double plan_seconds = 0;
  bool packed = false;                       ///< which pool
  std::vector<std::int64_t> packed_offsets;  ///< by slot

  std::int64_t overhead_bytes() const;
};

/// Plans a program within `budget_bytes`. Throws plan::BudgetError with the smallest budget that works.
MemoryPlan plan_memory(const Program& program, const Options& options, std::int64_t budget_bytes,
                       const Overhead& overhead);

}  // namespace penstock::training
