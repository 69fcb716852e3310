#include "training/step_record.h"

#include "base/median.h"

namespace penstock::training {
namespace {

constexpr std::size_t kRecent = 10;

}  // namespace

void StepRecord::add(double loss, double seconds, const StepStats& stats, double gradient_norm) {
  last_ = {loss,
           seconds,
           gradient_norm,
           static_cast<float>(stats.compute_seconds),
           static_cast<float>(stats.recompute_seconds),
           static_cast<float>(stats.stall_seconds)};
  last_stats_ = stats;
  seconds_in_all_ += seconds;
  if (recent_.size() < kRecent) {
    recent_.push_back(seconds);
  } else {
    recent_[static_cast<std::size_t>(steps_) % kRecent] = seconds;
  }
  if (steps_++ % every_ != 0) return;
  if (kept_.size() >= most_) {
    for (std::size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = kept_[2 * i];
    kept_.resize((kept_.size() + 1) / 2);
    every_ *= 2;
    if ((steps_ - 1) % every_ != 0) return;
  }
  kept_.push_back(last_);
}

template <typename Value>
std::vector<double> StepRecord::all(Value Kept::*value, bool with_first) const {
  std::vector<double> values;
  values.reserve(kept_.size() + 1);
  for (std::size_t i = with_first ? 0 : 1; i < kept_.size(); ++i)
    values.push_back(static_cast<double>(kept_[i].*value));
  const bool last_is_kept = steps_ == 0 || (steps_ - 1) % every_ == 0;
  if (!last_is_kept) values.push_back(static_cast<double>(last_.*value));
  return values;
}

std::vector<double> StepRecord::loss() const {
  return all(&Kept::loss);
}

std::vector<double> StepRecord::gradient_norm() const {
  return all(&Kept::gradient_norm);
}

std::vector<double> StepRecord::step_seconds() const {
  return all(&Kept::seconds);
}

double StepRecord::recent_seconds() const {
  return upper_median(recent_);
}

StepStats StepRecord::typical() const {
  StepStats typical = last_stats_;
  if (steps_ == 0) return typical;
  typical.stall_seconds = upper_median(all(&Kept::stall_seconds));
  typical.recompute_seconds = upper_median(all(&Kept::recompute_seconds));
  typical.compute_seconds = upper_median(all(&Kept::compute_seconds));
  // The first step touches memory for the first time.
  typical.step_seconds = upper_median(all(&Kept::seconds, steps_ == 1));
  return typical;
}

}  // namespace penstock::training
