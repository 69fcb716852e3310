#pragma once

#include <cstdint>
#include <string>

namespace penstock::training {

/// The learning rate as a pure function of the step.
class Schedule {
 public:
  /// `text`: "constant", "step:EVERY[,FACTOR]" (times FACTOR, 0.1 by default, each EVERY steps), "cosine" (to
  /// zero over `steps`); each may end in ",warmup:N" (linear over the first N steps). Throws UserError.
  static Schedule parse(const std::string& text, double base, std::int64_t steps);

  double at(std::int64_t step) const;

 private:
  enum class Kind { constant, step, cosine };
  Kind kind_ = Kind::constant;
  double base_ = 0;
  double factor_ = 0.1;
  std::int64_t every_ = 1;
  std::int64_t steps_ = 1;
  std::int64_t warmup_ = 0;
};

}  // namespace penstock::training
