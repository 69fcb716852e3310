#pragma once

#include <chrono>

namespace penstock {

/// Seconds of a clock that never goes back.
inline double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace penstock
