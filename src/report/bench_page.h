#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::report {

/// One policy under one budget.
struct BenchPoint {
  std::string policy;
  std::int64_t budget_bytes = 0;
  double images_per_second = 0;  ///< 0: it cannot run there
  std::string reason;            ///< why it cannot
};

/// What the report of a benchmark shows: policies over budgets. Plain data.
struct BenchReport {
  std::string model, command, machine, version;
  std::int64_t batch = 0;
  std::int64_t in_memory_bytes = 0;
  double in_memory_images_per_second = 0;
  std::vector<BenchPoint> points;
};

/// A page like run_page(): a line for each policy, its speed as a share of that in memory over the budget.
/// What cannot run is absent from the lines and listed.
std::string bench_page(const BenchReport& bench);

}  // namespace penstock::report
