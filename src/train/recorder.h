#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/penstock.h"
#include "plan/plan.h"
#include "run/step_stats.h"
#include "train/memory_plan.h"
#include "train/program.h"

namespace penstock::training {

/// Keeps the events of a few steps for `--trace` and `--report`, and writes both. Takes little memory while
/// training goes on: the first steps of the plan in use, and no more events than it says here. One thread.
class Recorder {
 public:
  static constexpr std::size_t kMaxSteps = 3;
  static constexpr std::size_t kMaxEvents = 60000;  ///< of all its steps; one step is kept whatever it has

  /// `on`: whether this process is the one that writes.
  Recorder(const Options& options, bool on) : options_(options), on_(on) {}

  /// Throws UserError if a file cannot be made where the options want it.
  void check() const;

  bool wanted() const { return on_ && (!options_.trace_file.empty() || !options_.report_file.empty()); }
  /// With the events of that step alone, and the plan that it ran by. Another plan than before: starts again.
  void after_step(std::int64_t step, const run::Trace& events, const plan::Plan& plan);
  /// What the report is to say in red: why the run was slow.
  void add_note(const std::string& line) { notes_.push_back(line); }

  /// Writes what is wanted. To be called when the pool is gone: the page and the trace take memory
  /// themselves.
  void write(const Program& program, const MemoryPlan& plan, const Result& result) const;

 private:
  const Options& options_;
  bool on_;
  std::vector<plan::Instruction> instructions_;
  std::int64_t first_step_ = 1;
  std::vector<run::Trace> steps_;
  std::size_t events_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace penstock::training
