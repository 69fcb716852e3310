#pragma once

#include <cmath>
#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "kernels/native/simd/loops.h"

/// Eight floats at once: one register with AVX2, two with SSE2. Everything is inline and has internal names,
/// so that no function compiled for AVX2 can be linked into the baseline.
namespace penstock::kernels::native::PENSTOCK_SIMD {

using F8 = float __attribute__((vector_size(32)));
using I8 = std::int32_t __attribute__((vector_size(32)));
using F8Unaligned = float __attribute__((vector_size(32), aligned(4), may_alias));

inline constexpr std::int64_t kLanes = 8;

[[gnu::always_inline]] static inline F8 load(const float* p) {
  return *reinterpret_cast<const F8Unaligned*>(p);
}
[[gnu::always_inline]] static inline void store(float* p, F8 v) {
  *reinterpret_cast<F8Unaligned*>(p) = v;
}
[[gnu::always_inline]] static inline F8 broadcast(float value) {
  return F8{value, value, value, value, value, value, value, value};
}
/// The first `count` of eight; the rest zero.
[[gnu::always_inline]] static inline F8 load_part(const float* p, std::int64_t count) {
  F8 v{};
  for (std::int64_t i = 0; i < count; ++i) v[i] = p[i];
  return v;
}
[[gnu::always_inline]] static inline void store_part(float* p, F8 v, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) p[i] = v[i];
}
/// All lanes or the first `count` of them.
[[gnu::always_inline]] static inline F8 take(const float* p, std::int64_t count) {
  return count == kLanes ? load(p) : load_part(p, count);
}
[[gnu::always_inline]] static inline void put(float* p, F8 v, std::int64_t count) {
  if (count == kLanes) {
    store(p, v);
  } else {
    store_part(p, v, count);
  }
}
/// A store past the caches; `p` is 32-byte aligned. finish_streaming() must follow on the same thread.
[[gnu::always_inline]] static inline void stream(float* p, F8 v) {
#if defined(__AVX2__)
  _mm256_stream_ps(p, reinterpret_cast<__m256>(v));
#else
  store(p, v);
#endif
}
[[gnu::always_inline]] static inline void finish_streaming() {
#if defined(__AVX2__)
  _mm_sfence();
#endif
}
[[gnu::always_inline]] static inline F8 square_root(F8 v) {
#if defined(__AVX2__)
  return reinterpret_cast<F8>(_mm256_sqrt_ps(reinterpret_cast<__m256>(v)));
#else
  for (int i = 0; i < kLanes; ++i) v[i] = std::sqrt(v[i]);
  return v;
#endif
}
/// NaN stays.
[[gnu::always_inline]] static inline F8 between(float low, float high, F8 v) {
#if defined(__AVX2__)
  const __m256 raised = _mm256_max_ps(_mm256_set1_ps(low), reinterpret_cast<__m256>(v));
  return reinterpret_cast<F8>(_mm256_min_ps(_mm256_set1_ps(high), raised));
#else
  v = v < low ? broadcast(low) : v;
  return v > high ? broadcast(high) : v;
#endif
}
[[gnu::always_inline]] static inline F8 relu(F8 v) {
  return v < 0 ? F8{} : v;
}
/// Bit i: whether lane i is positive.
[[gnu::always_inline]] static inline std::uint8_t positive_bits(F8 v) {
#if defined(__AVX2__)
  const __m256 positive = _mm256_cmp_ps(reinterpret_cast<__m256>(v), _mm256_setzero_ps(), _CMP_GT_OQ);
  return static_cast<std::uint8_t>(_mm256_movemask_ps(positive));
#else
  unsigned bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= (v[i] > 0 ? 1U : 0U) << static_cast<unsigned>(i);
  return static_cast<std::uint8_t>(bits);
#endif
}
/// Zero where the bit is not set.
[[gnu::always_inline]] static inline F8 keep_bits(F8 v, std::uint8_t bits) {
  constexpr I8 kBits{1, 2, 4, 8, 16, 32, 64, 128};
  const std::int32_t all = bits;
  const I8 chosen = (I8{all, all, all, all, all, all, all, all} & kBits) == kBits;
  return reinterpret_cast<F8>(reinterpret_cast<I8>(v) & chosen);
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
