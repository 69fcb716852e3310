#include <algorithm>
#include <cmath>
#include <numbers>

#include "penstock/training.h"

namespace penstock {

double Schedule::at(std::int64_t step, std::int64_t steps, double base) const {
  double rate = base;
  if (kind == Kind::step) {
    const std::int64_t drops = step / every;
    rate *= std::pow(factor, static_cast<double>(drops));
  } else if (kind == Kind::cosine) {
    const std::int64_t length = std::max<std::int64_t>(1, steps - warmup);
    const double done =
        static_cast<double>(std::max<std::int64_t>(0, step - warmup)) / static_cast<double>(length);
    rate *= 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, done)));
  }
  if (step < warmup) rate *= static_cast<double>(step + 1) / static_cast<double>(warmup);
  return rate;
}

}  // namespace penstock
