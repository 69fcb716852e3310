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

/// exp(x) = mantissa * 2^power.
struct Exponential {
  F8 mantissa;
  I8 power;
};

[[gnu::always_inline]] static inline Exponential parts_of_exp8(F8 x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: what is added to it is rounded to a whole number
  const F8 shifted = x * 1.44269504F + kRound;
  const F8 whole = shifted - kRound;
  F8 rest = x - whole * 0.693359375F;
  rest = rest - whole * -2.12194440e-4F;
  F8 sum = broadcast(1.9875691500e-4F);
  sum = sum * rest + 1.3981999507e-3F;
  sum = sum * rest + 8.3334519073e-3F;
  sum = sum * rest + 4.1665795894e-2F;
  sum = sum * rest + 1.6666665459e-1F;
  sum = sum * rest + 5.0000001201e-1F;
  sum = sum * rest * rest + rest + 1.0F;
  return {sum, reinterpret_cast<I8>(shifted) - reinterpret_cast<I8>(broadcast(kRound))};
}

constexpr float kLowestExp = -87.3F;  ///< where float32's normal numbers end

/// 0 below kLowestExp.
[[gnu::always_inline]] static inline F8 exp8(F8 x) {
  const I8 vanishes = x < kLowestExp;
  const Exponential parts = parts_of_exp8(between(kLowestExp, 88.7F, x));
  // 2^power as two factors, because 2^128 is no float32.
  const I8 half = parts.power >> 1;
  const F8 factor0 = reinterpret_cast<F8>((half + 127) << 23);
  const F8 factor1 = reinterpret_cast<F8>((parts.power - half + 127) << 23);
  const F8 value = parts.mantissa * factor0 * factor1;
  return vanishes ? F8{} : value;
}

/// Within 5e-39 of 0 below -88.
[[gnu::always_inline]] static inline F8 sigmoid8(F8 x) {
  constexpr float kHighest = 88.37F;  // its power is 127, so that one factor will do
  const Exponential parts = parts_of_exp8(between(kLowestExp, kHighest, -x));
  return 1.0F / (1.0F + parts.mantissa * reinterpret_cast<F8>((parts.power + 127) << 23));
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
