#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "base/long_vector.h"

namespace penstock {

/// Which extents a tier has, and where each lies in its file, on a boundary of kTierAlignment. Those
/// that hold something at different times only may lie at the same place.
class TierExtents {
 public:
  /// Each has a place of its own, one after the other.
  TierExtents(const LongVector<std::int64_t>& extent_bytes);
  TierExtents(std::initializer_list<std::int64_t> extent_bytes);
  /// They lie at these offsets in a file of `total_bytes`; -1: nowhere for now.
  TierExtents(const LongVector<std::int64_t>& extent_bytes, std::span<const std::int64_t> offsets,
              std::int64_t total_bytes);

  int count() const { return static_cast<int>(extents_.size()); }
  std::int64_t size_bytes(int extent) const { return checked(extent).size_bytes; }
  /// -1: nowhere.
  std::int64_t offset_bytes(int extent) const { return checked(extent).offset_bytes; }
  /// The size as it is transferred: a multiple of kTierAlignment.
  std::int64_t padded_bytes(int extent) const;
  /// Of the file.
  std::int64_t total_bytes() const { return total_bytes_; }

  /// From now on they lie here; the file stays as large as it is.
  void place(std::span<const std::int64_t> offsets);

 private:
  struct Extent {
    std::int64_t size_bytes = 0;
    std::int64_t offset_bytes = -1;
  };
  const Extent& checked(int extent) const;

  LongVector<Extent> extents_;
  std::int64_t total_bytes_ = 0;
};

}  // namespace penstock
