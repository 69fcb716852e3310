#pragma once

#include "kernels/native/wide/vector16.h"

/// Functions of sixteen floats at once.
namespace penstock::kernels::native::PENSTOCK_SIMD {

inline constexpr float kLog2OfE = 1.44269504F;

/// 2^x to one unit in the last place; 0 where that is no normal number. NaN stays.
[[gnu::always_inline]] static inline F16 exp2_16(F16 x) {
  const auto given = reinterpret_cast<__m512>(x);
  const __mmask16 normal = _mm512_cmp_ps_mask(given, _mm512_set1_ps(-126.0F), _CMP_NLT_UQ);
  const __m512 whole =
      _mm512_maskz_roundscale_ps(0xFFFF, given, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const F16 rest = x - reinterpret_cast<F16>(whole);
  F16 sum = broadcast16(1.53533576e-4F);
  sum = sum * rest + 1.33988762e-3F;
  sum = sum * rest + 9.61843785e-3F;
  sum = sum * rest + 5.55033237e-2F;
  sum = sum * rest + 2.40226477e-1F;
  sum = sum * rest + 6.93147182e-1F;
  sum = sum * rest + 1.0F;
  return reinterpret_cast<F16>(_mm512_maskz_scalef_ps(normal, reinterpret_cast<__m512>(sum), whole));
}

[[gnu::always_inline]] static inline F16 larger16(F16 a, F16 b) {
  return a > b ? a : b;
}

/// The lanes brought together by combine(), always in the same order.
template <typename Combine>
[[gnu::always_inline]] static inline float combine_lanes16(F16 v, const Combine& combine) {
  const auto swapped = [](F16 lanes, int distance) {
    I16 from{};
    for (int i = 0; i < kWide; ++i) from[i] = i ^ distance;
    return permute16(lanes, from);
  };
  v = combine(v, swapped(v, 8));
  v = combine(v, swapped(v, 4));
  v = combine(v, swapped(v, 2));
  v = combine(v, swapped(v, 1));
  return v[0];
}
[[gnu::always_inline]] static inline float sum_lanes16(F16 v) {
  return combine_lanes16(v, [](F16 a, F16 b) { return a + b; });
}
[[gnu::always_inline]] static inline float largest_lane16(F16 v) {
  return combine_lanes16(v, [](F16 a, F16 b) { return larger16(a, b); });
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
