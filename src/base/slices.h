#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock {

/// Elements [begin, end) of an array.
struct Slice {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const Slice&) const = default;
};

/// The part of `count` elements that belongs to `rank` of `ranks`: consecutive parts of equal size, whole
/// cache lines of floats but for the last; parts at the end may be smaller or empty.
inline Slice rank_slice(std::int64_t count, int rank, int ranks) {
  constexpr std::int64_t kLine = 16;
  const std::int64_t lines = (count + kLine - 1) / kLine;
  const std::int64_t size = (lines + ranks - 1) / ranks * kLine;
  return {std::min(count, size * rank), std::min(count, size * (rank + 1))};
}

}  // namespace penstock
