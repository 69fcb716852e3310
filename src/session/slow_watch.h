#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fit/fit.h"
#include "report/why_slower.h"
#include "run/trace.h"
#include "tier/tier.h"

namespace penstock::session {

/// What the kernel has counted about this process and its machine up to a moment.
struct OutsideCounts {
  double wall_seconds = 0;
  double cpu_seconds = 0;              ///< of all threads of this process
  double memory_pressure_seconds = 0;  ///< during which something on the machine waited for memory
  std::int64_t major_faults = 0;
};
OutsideCounts outside_counts();
using CountOutside = std::function<OutsideCounts()>;

/// Compares steps with what was planned before the first of them, and says why they take longer. Says nothing
/// where no time was predicted. One thread.
class SlowWatch {
 public:
  SlowWatch(const fit::Fit& fit, int threads, CountOutside count = outside_counts);

  /// After each step, with what the tier has counted so far: once, when some steps in a row were slower than
  /// planned, why.
  std::optional<std::string> after_step(const StepStats& stats, const TierStats& tier);
  /// Why the run as a whole was, its first step left out; empty if it was not.
  std::string whole_run() const;

 private:
  static constexpr std::size_t kInARow = 5;

  /// What was counted when a step was over.
  struct Mark {
    StepStats stats;
    TierStats tier;
    OutsideCounts outside;
  };
  report::Figures between(const Mark& first, const Mark& last, const StepStats& mean, double steps) const;

  int threads_;
  CountOutside count_;
  report::Figures planned_;
  std::int64_t steps_ = 0;
  std::optional<Mark> first_;
  std::deque<Mark> recent_;
  StepStats sum_;  ///< of all steps but the first
  bool told_ = false;
};

}  // namespace penstock::session
