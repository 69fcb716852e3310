#pragma once

#include <cstdint>

#include "base/random.h"

namespace penstock {

/// A pseudo-random order of 0 .. size-1 that is computed at one place at a time and stores nothing: a Feistel
/// network over the next even number of bits, applied again while it leads outside. A pure function of (seed,
/// epoch, size).
class Permutation {
 public:
  Permutation(std::uint64_t seed, std::int64_t epoch, std::int64_t size);

  std::int64_t operator()(std::int64_t place) const;

 private:
  CounterRandom random_;
  std::uint64_t size_;
  std::uint32_t half_bits_;
};

}  // namespace penstock
