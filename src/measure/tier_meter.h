#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/profile.h"
#include "tier/tier.h"

namespace penstock::measure {

/// Extents of one size that a tier is measured with; a last one is of the smallest size.
inline constexpr int kMeteredExtents = 4;

/// Moves extents to and fro. Tier and buffers, kMeteredExtents of extent 0's size, must outlive it.
class TierMeter {
 public:
  TierMeter(Tier& tier, std::byte* buffers) : tier_(tier), buffers_(buffers) {}

  /// Writes every extent once.
  void fill();
  /// Moves about `bytes` through each direction asked for, all extents of a direction at a time, and returns
  /// bytes per second of one direction.
  double rate(bool reads, bool writes, std::int64_t bytes);
  /// Of a small request, for the tier and for the one who starts it.
  void latency(plan::Profile& profile);

 private:
  void* buffer(int extent) const;

  Tier& tier_;
  std::byte* buffers_;
};

}  // namespace penstock::measure
