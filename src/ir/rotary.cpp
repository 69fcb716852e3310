#include "ir/rotary.h"

#include <cmath>
#include <numbers>

namespace penstock::ir {

double rotary_frequency(const RotaryAttrs& attrs, std::int64_t pair) {
  const double exponent = 2.0 * static_cast<double>(pair) / static_cast<double>(attrs.rotated);
  const double frequency = std::pow(static_cast<double>(attrs.base), -exponent);
  const auto factor = static_cast<double>(attrs.factor);
  if (attrs.low_turns == attrs.high_turns) return frequency / factor;
  // Pairs that turn often within the original length stay, those that turn seldom are stretched, and between
  // the two it goes over evenly.
  const double turns = static_cast<double>(attrs.original_length) * frequency / (2 * std::numbers::pi);
  const auto low = static_cast<double>(attrs.low_turns);
  const auto high = static_cast<double>(attrs.high_turns);
  if (turns < low) return frequency / factor;
  if (turns > high) return frequency;
  const double share = (turns - low) / (high - low);
  return (1 - share) * frequency / factor + share * frequency;
}

}  // namespace penstock::ir
