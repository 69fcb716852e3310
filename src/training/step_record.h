#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "penstock/step_stats.h"

namespace penstock::training {

/// What is kept of each step. Its memory is bounded, because the budget is: once `most` steps are kept, every
/// second of them is let go, and of those to come every second is kept, then every fourth. One thread.
class StepRecord {
 public:
  static constexpr std::size_t kMost = 16384;
  explicit StepRecord(std::size_t most = kMost) : most_(most) {}

  void add(double loss, double seconds, const StepStats& stats, double gradient_norm = 0);

  std::int64_t steps() const { return steps_; }
  /// One in so many steps is kept, the first being one of them.
  std::int64_t every() const { return every_; }
  double seconds_in_all() const { return seconds_in_all_; }
  double last_loss() const { return last_.loss; }
  double last_gradient_norm() const { return last_.gradient_norm; }
  double last_seconds() const { return last_.seconds; }
  /// Of those that are kept, and of the last one.
  std::vector<double> loss() const;
  std::vector<double> gradient_norm() const;
  std::vector<double> step_seconds() const;
  /// The middle time of the newest few, for what is told as training goes on.
  double recent_seconds() const;
  /// Medians; bytes are the last step's.
  StepStats typical() const;

 private:
  struct Kept {
    double loss = 0;
    double seconds = 0;
    double gradient_norm = 0;
    float compute_seconds = 0, recompute_seconds = 0, stall_seconds = 0;
  };
  template <typename Value>
  std::vector<double> all(Value Kept::*value, bool with_first = true) const;

  std::size_t most_;
  std::int64_t steps_ = 0;
  std::int64_t every_ = 1;
  double seconds_in_all_ = 0;
  std::vector<Kept> kept_;
  Kept last_;
  StepStats last_stats_;
  std::vector<double> recent_;  ///< a ring of a few
};

}  // namespace penstock::training
