#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/layers.h"
#include "report/step_view.h"

namespace penstock::report {

/// All that the report of one run shows. Plain data; the names are those of `penstock train --json`. Times
/// that are not known are 0.
struct RunReport {
  std::string model, policy, tier, pool, command, machine, version, weights_sha256;
  std::int64_t batch = 0, steps = 0;
  int threads = 0;

  std::int64_t budget_bytes = 0, in_memory_bytes = 0, overhead_bytes = 0, pool_bytes = 0;
  std::int64_t planned_peak_bytes = 0, pool_peak_bytes = 0, peak_rss_bytes = 0;
  std::int64_t planned_out_bytes = 0, planned_in_bytes = 0;
  std::int64_t swapped_out_bytes = 0, swapped_in_bytes = 0, swap_file_bytes = 0;
  std::map<std::string, std::int64_t> peak_by_tag;

  double images_per_second = 0;
  double step_seconds = 0;  ///< median
  double compute_seconds = 0, recompute_seconds = 0, stall_seconds = 0;
  double predicted_step_seconds = 0, predicted_stall_seconds = 0, bound_seconds = 0;
  double startup_seconds = 0, plan_seconds = 0;
  bool profile_measured = false;  ///< otherwise the prediction is from an estimate

  std::vector<double> loss;  ///< one a step
  double accuracy = -1;      ///< negative: not evaluated
  std::int64_t test_images = 0;
  std::vector<std::pair<std::int64_t, double>> accuracy_by_step;

  StepView step;
  std::vector<LayerUse> layers;
  std::vector<std::string> notes;  ///< such as why it was slower than planned
};

/// One page with everything in it: no script, nothing from elsewhere. Well-formed as XML, below 1 MB however
/// long the step is. Whatever came from outside (names, paths, the command) is escaped.
std::string run_page(const RunReport& run);

/// The two sentences at the top of the page, as plain text: where the memory went, and why it is this fast.
std::string memory_sentence(const RunReport& run);
std::string speed_sentence(const RunReport& run);

}  // namespace penstock::report
