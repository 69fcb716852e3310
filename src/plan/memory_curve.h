#pragma once

#include <cstddef>
#include <cstdint>

#include "base/long_vector.h"

namespace penstock::plan {

/// Bytes over positions 0 .. size - 1, all 0 at first: adding to a range and the highest of a range each take
/// logarithmic time.
class MemoryCurve {
 public:
  explicit MemoryCurve(std::size_t size);

  /// Adds to each position what `bytes` has for it, in linear time; positions behind its end get nothing.
  void add_all(const LongVector<std::int64_t>& bytes, std::int64_t first = 0);
  /// Adds to positions [first, last]; an empty range is allowed.
  void add(std::int64_t first, std::int64_t last, std::int64_t bytes);
  /// Adds to all positions from `first` on.
  void add_from(std::int64_t first, std::int64_t bytes) { add(first, size_ - 1, bytes); }
  /// The highest of positions [first, last], which must not be empty.
  std::int64_t max(std::int64_t first, std::int64_t last) const;
  std::int64_t at(std::int64_t position) const { return max(position, position); }

 private:
  struct Node {
    std::int64_t max = 0;  ///< of the positions below, `added` included
    std::int64_t added = 0;
  };

  std::int64_t size_;
  std::int64_t leaves_ = 1;
  LongVector<Node> nodes_;  ///< a complete binary tree, the root at 1
};

}  // namespace penstock::plan
