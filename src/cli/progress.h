#pragma once

#include <chrono>
#include <string>

#include "penstock/penstock.h"

namespace penstock::cli {

/// Shows training as it goes: on a terminal one live line, in a pipe a plain line now and then, nothing when
/// quiet. Notes are printed above the live line.
class ProgressView {
 public:
  explicit ProgressView(bool quiet);
  ~ProgressView();
  ProgressView(const ProgressView&) = delete;
  ProgressView& operator=(const ProgressView&) = delete;

  void step(const Progress& progress);
  void note(const std::string& line);
  /// Ends the live line, so that what follows starts on a line of its own.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  bool quiet_;
  bool terminal_;
  bool live_ = false;
  Clock::time_point last_{};
};

/// "step 12/100  loss 2.3012  6.1 images/s  980 MiB of 1.00 GiB  stall 3 %  1:20 left"
std::string progress_text(const Progress& progress);

/// "45 s", "3:20", "2:05:00"
std::string format_seconds(double seconds);

}  // namespace penstock::cli
