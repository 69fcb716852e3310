#pragma once

#include <chrono>
#include <string>

#include "penstock/penstock.h"

namespace penstock::cli {

enum class Detail : std::uint8_t { quiet, normal, verbose };

/// Shows training as it goes: on a terminal one live line, in a pipe a plain line now and then, nothing when
/// quiet; when verbose a line for every step and every part of the run. Notes are printed above the live
/// line.
class ProgressView {
 public:
  explicit ProgressView(Detail detail);
  ~ProgressView();
  ProgressView(const ProgressView&) = delete;
  ProgressView& operator=(const ProgressView&) = delete;

  void step(const Progress& progress);
  void phase(const Phase& phase);
  void note(const std::string& line);
  /// Ends the live line, so that what follows starts on a line of its own.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  Detail detail_;
  bool terminal_;
  bool live_ = false;
  Clock::time_point last_{};
};

/// "step 12/100  loss 2.3012  6.1 images/s  0.98 GiB of 1.00 GiB  stall 3 %  in 310 MB/s  out 290 MB/s  1:20
/// left". Where that is wider than `width` columns, the least important parts are left out; 0: no limit.
std::string progress_text(const Progress& progress, int width = 0);

/// All numbers of a step: "step 12/100: loss 2.3012, 5.21 s: 4.98 s in kernels (0.21 s again), ...".
std::string step_text(const Progress& progress);

/// "6.1 images/s", or of text with so many tokens a sample "812 tokens/s".
std::string rate_text(double samples_per_second, std::int64_t tokens_per_sample);

/// "45 s", "3:20", "2:05:00"
std::string format_seconds(double seconds);

}  // namespace penstock::cli
