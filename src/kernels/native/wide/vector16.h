#pragma once

#include <immintrin.h>

#include "kernels/native/grouped.h"
#include "kernels/native/simd/threads.h"

/// Sixteen floats in a register of AVX-512. Everything is inline and has internal names, as in vector8.h.
namespace penstock::kernels::native::PENSTOCK_SIMD {

using F16 = float __attribute__((vector_size(64)));
using I16 = std::int32_t __attribute__((vector_size(64)));
using F16Unaligned = float __attribute__((vector_size(64), aligned(4), may_alias));

inline constexpr std::int64_t kWide = 16;

[[gnu::always_inline]] static inline F16 load16(const float* p) {
  return *reinterpret_cast<const F16Unaligned*>(p);
}
[[gnu::always_inline]] static inline void store16(float* p, F16 v) {
  *reinterpret_cast<F16Unaligned*>(p) = v;
}
[[gnu::always_inline]] static inline F16 broadcast16(float value) {
  return reinterpret_cast<F16>(_mm512_set1_ps(value));
}
/// The first `count` lanes, at most sixteen.
[[gnu::always_inline]] static inline __mmask16 first_lanes16(std::int64_t count) {
  return static_cast<__mmask16>(count < kWide ? (1U << static_cast<unsigned>(count)) - 1U : 0xFFFFU);
}
/// Zero in the other lanes, whose memory is not touched.
[[gnu::always_inline]] static inline F16 load_lanes16(__mmask16 lanes, const float* p) {
  return reinterpret_cast<F16>(_mm512_maskz_loadu_ps(lanes, p));
}
[[gnu::always_inline]] static inline void store_lanes16(__mmask16 lanes, float* p, F16 v) {
  _mm512_mask_storeu_ps(p, lanes, reinterpret_cast<__m512>(v));
}
/// Lane i of the result is lane from[i]. With a mask of all lanes: GCC 12 warns of the other one's undefined
/// value.
[[gnu::always_inline]] static inline F16 permute16(F16 v, I16 from) {
  return reinterpret_cast<F16>(
      _mm512_maskz_permutexvar_ps(0xFFFF, reinterpret_cast<__m512i>(from), reinterpret_cast<__m512>(v)));
}
/// For permute16(): each lane becomes the `which`-th of its group of `group`.
[[gnu::always_inline]] static inline I16 of_group(int group, int which) {
  I16 from{};
  for (int i = 0; i < kWide; ++i) from[i] = i / group * group + which;
  return from;
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
