#pragma once

#include <omp.h>

#include <cstdint>

#include "kernels/native/simd/loops.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {

/// Not those of the standard library: these sources must not bring its inline functions in, compiled for
/// AVX2.
static inline std::int64_t smaller(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
static inline std::int64_t larger(std::int64_t a, std::int64_t b) {
  return a > b ? a : b;
}

/// A thread's share of `count` units, in whole multiples of `grain`.
struct Share {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Called inside a parallel region: the same units fall to the same thread in every loop over them.
static inline Share my_share(std::int64_t count, std::int64_t grain = 1) {
  const std::int64_t threads = omp_get_num_threads();
  const std::int64_t me = omp_get_thread_num();
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t begin = grains * me / threads * grain;
  const std::int64_t end = grains * (me + 1) / threads * grain;
  return {begin < count ? begin : count, end < count ? end : count};
}

/// Tensors beyond this size are written past the caches when nothing of them is read on the way.
inline constexpr std::int64_t kStreamBytes = std::int64_t{24} << 20;

/// Whether the eight-lane stores of a tensor at `y` of `count` floats should stream. The two that make up a
/// cache line must follow each other: half a line is ten times as dear as a whole one.
static inline bool worth_streaming(const float* y, std::int64_t count) {
  return count * 4 >= kStreamBytes && reinterpret_cast<std::uintptr_t>(y) % 64 == 0;
}

/// Below this many floats a parallel region costs more than it gains.
inline constexpr std::int64_t kSerial = 16384;

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
