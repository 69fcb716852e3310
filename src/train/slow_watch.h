#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "report/why_slower.h"
#include "run/step_stats.h"
#include "tier/tier.h"
#include "train/engine.h"
#include "train/program.h"

namespace penstock::training {

/// What the kernel has counted about this process and its machine up to a moment.
struct OutsideCounts {
  double wall_seconds = 0;
  double cpu_seconds = 0;              ///< of all threads of this process
  double memory_pressure_seconds = 0;  ///< during which something on the machine waited for memory
  std::int64_t major_faults = 0;
};
OutsideCounts outside_counts();

/// Compares steps with what was planned before the first of them, and says why they take longer. Says nothing
/// where no time was predicted. One thread; the engine must outlive it.
class SlowWatch {
 public:
  SlowWatch(const Program& program, const Engine& engine, int threads);

  /// After each step: once, when some steps in a row were slower than planned, why.
  std::optional<std::string> after_step(const run::StepStats& stats);
  /// Why the run as a whole was, its first step left out; empty if it was not.
  std::string whole_run() const;

 private:
  static constexpr std::size_t kInARow = 5;

  /// What was counted when a step was over.
  struct Mark {
    run::StepStats stats;
    TierStats tier;
    OutsideCounts outside;
  };
  report::Figures between(const Mark& first, const Mark& last, const run::StepStats& mean,
                          double steps) const;

  const Engine& engine_;
  int threads_;
  report::Figures planned_;
  std::int64_t steps_ = 0;
  std::optional<Mark> first_;
  std::deque<Mark> recent_;
  run::StepStats sum_;  ///< of all steps but the first
  bool told_ = false;
};

}  // namespace penstock::training
