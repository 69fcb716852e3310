#include "base/random.h"

#include <cmath>
#include <numbers>

namespace penstock {

float CounterRandom::normal(std::uint64_t element) const {
  const auto words = block(element);
  const double radius = std::sqrt(-2.0 * std::log((static_cast<double>(words[0]) + 0.5) * 0x1p-32));
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(words[1]) * 0x1p-32;
  return static_cast<float>(radius * std::cos(angle));
}

}  // namespace penstock
