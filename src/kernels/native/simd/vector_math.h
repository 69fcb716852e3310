#pragma once

#include "kernels/native/simd/vector8.h"

/// Functions of eight floats at once, to about one unit in the last place of float32 unless said otherwise.
namespace penstock::kernels::native::PENSTOCK_SIMD {

[[gnu::always_inline]] static inline F8 larger8(F8 a, F8 b) {
  return a > b ? a : b;
}

/// The lanes' sum and largest, always in the same order.
[[gnu::always_inline]] static inline float sum_lanes(F8 v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}
[[gnu::always_inline]] static inline float largest_lane(F8 v) {
  float largest = v[0];
  for (int i = 1; i < kLanes; ++i) largest = v[i] > largest ? v[i] : largest;
  return largest;
}

/// 0 below -87.3, where float32's normal numbers end.
[[gnu::always_inline]] static inline F8 exp8(F8 x) {
  constexpr float kLowest = -87.3F;
  constexpr float kHighest = 88.7F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: what is added to it is rounded to a whole number
  const F8 lowest = broadcast(kLowest);
  const F8 highest = broadcast(kHighest);
  const I8 vanishes = x < lowest;
  F8 inside = x < lowest ? lowest : x;
  inside = inside > highest ? highest : inside;
  const F8 shifted = inside * 1.44269504F + kRound;
  const F8 whole = shifted - kRound;
  F8 rest = inside - whole * 0.693359375F;
  rest = rest - whole * -2.12194440e-4F;
  F8 sum = broadcast(1.9875691500e-4F);
  sum = sum * rest + 1.3981999507e-3F;
  sum = sum * rest + 8.3334519073e-3F;
  sum = sum * rest + 4.1665795894e-2F;
  sum = sum * rest + 1.6666665459e-1F;
  sum = sum * rest + 5.0000001201e-1F;
  sum = sum * rest * rest + rest + 1.0F;
  // 2^whole as two factors, because 2^128 is no float32.
  const I8 power = reinterpret_cast<I8>(shifted) - reinterpret_cast<I8>(broadcast(kRound));
  const I8 half = power >> 1;
  const F8 factor0 = reinterpret_cast<F8>((half + 127) << 23);
  const F8 factor1 = reinterpret_cast<F8>((power - half + 127) << 23);
  const F8 value = sum * factor0 * factor1;
  return vanishes ? F8{} : value;
}

[[gnu::always_inline]] static inline F8 sigmoid8(F8 x) {
  return 1.0F / (1.0F + exp8(-x));
}

/// The share of the normal distribution below x: (1 + erf(x / sqrt 2)) / 2, to 1e-7. A rational approximation
/// (Abramowitz and Stegun 7.1.26) of the tail, so that small shares keep their digits.
[[gnu::always_inline]] static inline F8 normal_share8(F8 x) {
  const F8 z = (x < 0 ? -x : x) * 0.70710678F;
  const F8 t = 1.0F / (1.0F + 0.3275911F * z);
  F8 sum = broadcast(1.061405429F);
  sum = sum * t - 1.453152027F;
  sum = sum * t + 1.421413741F;
  sum = sum * t - 0.284496736F;
  sum = sum * t + 0.254829592F;
  const F8 tail = 0.5F * sum * t * exp8(-z * z);
  return x < 0 ? tail : 1.0F - tail;
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
