#pragma once

#include <cstdint>
#include <vector>

namespace penstock {

/// Where each extent lies in a tier's file: one after the other, each on a boundary of kTierAlignment.
class Extents {
 public:
  explicit Extents(const std::vector<std::int64_t>& extent_bytes);

  int count() const { return static_cast<int>(extents_.size()); }
  std::int64_t size_bytes(int extent) const { return checked(extent).size_bytes; }
  std::int64_t offset_bytes(int extent) const { return checked(extent).offset_bytes; }
  /// The size as it is transferred: a multiple of kTierAlignment.
  std::int64_t padded_bytes(int extent) const;
  std::int64_t total_bytes() const { return total_bytes_; }

 private:
  struct Extent {
    std::int64_t size_bytes = 0;
    std::int64_t offset_bytes = 0;
  };
  const Extent& checked(int extent) const;

  std::vector<Extent> extents_;
  std::int64_t total_bytes_ = 0;
};

}  // namespace penstock
