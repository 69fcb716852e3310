#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/long_vector.h"
#include "fit/fit.h"
#include "penstock/session.h"
#include "run/trace.h"

namespace penstock::session {

/// What a session knows of its run.
struct RunFacts {
  Forecast plan;
  std::string tier;
  int threads = 0;
  std::int64_t pool_peak_bytes = 0, peak_rss_bytes = 0;
  std::map<std::string, std::int64_t> peak_by_tag;
};

/// Keeps the events of a few steps for a trace and a page about the run, and writes both. Takes little memory
/// while training goes on: the first steps of the plan in use, and no more events than it says here. One
/// thread.
class Recorder {
 public:
  static constexpr std::size_t kMaxSteps = 3;
  static constexpr std::size_t kMaxEvents = 60000;  ///< of all its steps; one step is kept whatever it has

  /// With the events of that step alone, and the plan that it ran by. Another plan than before: starts again.
  void after_step(std::int64_t step, const run::Trace& events, const plan::Plan& plan);
  const std::vector<run::Trace>& steps() const { return steps_; }

  /// Writes those files that are named. To be called when the pool is gone: the page and the trace take
  /// memory themselves.
  void write(const fit::Fit& fit, const RunFacts& facts, const RunStory& story, const std::string& trace_file,
             const std::string& report_file) const;

 private:
  LongVector<plan::Instruction> instructions_;
  std::int64_t first_step_ = 1;
  std::vector<run::Trace> steps_;
  std::size_t events_ = 0;
};

}  // namespace penstock::session
