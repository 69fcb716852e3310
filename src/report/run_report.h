#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "penstock/session.h"
#include "report/layers.h"
#include "report/step_view.h"

namespace penstock::report {

/// All that the report of one run shows. Plain data. Times that are not known are 0.
struct RunReport {
  RunStory story;
  Forecast plan;
  std::string tier, machine, version;
  int threads = 0;
  std::int64_t pool_peak_bytes = 0, peak_rss_bytes = 0;
  std::map<std::string, std::int64_t> peak_by_tag;
  double plan_seconds = 0;
  bool profile_measured = false;  ///< otherwise the prediction is from an estimate
  StepView step;
  std::vector<LayerUse> layers;

  double samples_per_second() const {
    const double seconds = story.typical.step_seconds;
    return seconds > 0 ? static_cast<double>(story.batch) / seconds : 0;
  }
};

/// One page with everything in it: no script, nothing from elsewhere. Well-formed as XML, below 1 MB however
/// long the step is. Whatever came from outside (names, paths, the command) is escaped.
std::string run_page(const RunReport& run);

/// The two sentences at the top of the page, as plain text: where the memory went, and why it is this fast.
std::string memory_sentence(const RunReport& run);
std::string speed_sentence(const RunReport& run);

}  // namespace penstock::report
