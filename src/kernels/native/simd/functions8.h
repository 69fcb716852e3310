#pragma once

#include "kernels/native/simd/vector_math.h"

/// More functions of eight floats at once, to one or two units in the last place of float32.
namespace penstock::kernels::native::PENSTOCK_SIMD {

[[gnu::always_inline]] static inline F8 abs8(F8 x) {
  return reinterpret_cast<F8>(reinterpret_cast<I8>(x) & 0x7fffffff);
}
[[gnu::always_inline]] static inline I8 is_nan8(F8 x) {
  return (reinterpret_cast<I8>(x) & 0x7fffffff) > 0x7f800000;
}
/// |x| with the sign of s.
[[gnu::always_inline]] static inline F8 with_sign8(F8 x, F8 s) {
  const I8 sign = reinterpret_cast<I8>(s) & static_cast<std::int32_t>(0x80000000U);
  return reinterpret_cast<F8>((reinterpret_cast<I8>(x) & 0x7fffffff) | sign);
}

/// One lane after the other, for functions that networks hardly use.
template <typename Function>
[[gnu::always_inline]] static inline F8 by_lane8(F8 x, const Function& function) {
  for (int i = 0; i < kLanes; ++i) x[i] = function(x[i]);
  return x;
}

#if defined(__AVX2__)
[[gnu::always_inline]] static inline F8 floor8(F8 x) {
  return reinterpret_cast<F8>(_mm256_floor_ps(reinterpret_cast<__m256>(x)));
}
[[gnu::always_inline]] static inline F8 ceil8(F8 x) {
  return reinterpret_cast<F8>(_mm256_ceil_ps(reinterpret_cast<__m256>(x)));
}
/// Halves to even.
[[gnu::always_inline]] static inline F8 round8(F8 x) {
  return reinterpret_cast<F8>(
      _mm256_round_ps(reinterpret_cast<__m256>(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
[[gnu::always_inline]] static inline F8 truncate8(F8 x) {
  return reinterpret_cast<F8>(
      _mm256_round_ps(reinterpret_cast<__m256>(x), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
}
#else
[[gnu::always_inline]] static inline F8 floor8(F8 x) {
  return by_lane8(x, [](float v) { return __builtin_floorf(v); });
}
[[gnu::always_inline]] static inline F8 ceil8(F8 x) {
  return by_lane8(x, [](float v) { return __builtin_ceilf(v); });
}
[[gnu::always_inline]] static inline F8 round8(F8 x) {
  return by_lane8(x, [](float v) { return __builtin_nearbyintf(v); });
}
[[gnu::always_inline]] static inline F8 truncate8(F8 x) {
  return by_lane8(x, [](float v) { return __builtin_truncf(v); });
}
#endif

/// exp(r) - 1 for |r| of at most ln 2 / 2, by its series.
[[gnu::always_inline]] static inline F8 small_exp_minus_1(F8 r) {
  F8 sum = broadcast(1.0F / 40320);
  sum = sum * r + 1.0F / 5040;
  sum = sum * r + 1.0F / 720;
  sum = sum * r + 1.0F / 120;
  sum = sum * r + 1.0F / 24;
  sum = sum * r + 1.0F / 6;
  sum = sum * r + 0.5F;
  return sum * r * r + r;
}

[[gnu::always_inline]] static inline F8 exp_minus_1_8(F8 x) {
  constexpr float kRound = 12582912.0F;
  F8 inside = x < -30.0F ? broadcast(-30.0F) : x;
  inside = inside > 88.0F ? broadcast(88.0F) : inside;
  const F8 shifted = inside * 1.44269504F + kRound;
  const F8 whole = shifted - kRound;
  F8 rest = inside - whole * 0.693359375F;
  rest = rest - whole * -2.12194440e-4F;
  const I8 power = reinterpret_cast<I8>(shifted) - reinterpret_cast<I8>(broadcast(kRound));
  const F8 scale = reinterpret_cast<F8>((power + 127) << 23);
  const F8 value = scale * small_exp_minus_1(rest) + (scale - 1.0F);
  return x > 88.0F ? exp8(x) : value;
}

/// The logarithm: x = 2^e * m with m within [sqrt(1/2), sqrt(2)), and log m = 2 artanh((m - 1) / (m + 1)).
[[gnu::always_inline]] static inline F8 log8(F8 x) {
  const I8 tiny = x < 1.17549435e-38F;
  const F8 normal = tiny ? x * 33554432.0F : x;
  const I8 bits = reinterpret_cast<I8>(normal) - 0x3f3504f3;
  const I8 exponent = bits >> 23;
  const F8 m = reinterpret_cast<F8>((bits & 0x007fffff) + 0x3f3504f3);
  const F8 f = m - 1.0F;
  const F8 s = f / (m + 1.0F);
  const F8 z = s * s;
  F8 sum = broadcast(2.0F / 11);
  sum = sum * z + 2.0F / 9;
  sum = sum * z + 2.0F / 7;
  sum = sum * z + 2.0F / 5;
  sum = sum * z + 2.0F / 3;
  const F8 e = __builtin_convertvector(exponent, F8) - (tiny ? broadcast(25.0F) : F8{});
  // 2 s = f - s f is exact where it matters, near m = 1.
  F8 value = e * 0.693359375F + ((f - s * f) + (sum * z * s + e * -2.12194440e-4F));
  constexpr float kInfinity = __builtin_inff();
  value = x == kInfinity ? broadcast(kInfinity) : value;
  value = x == 0 ? broadcast(-kInfinity) : value;
  return ((x < 0) | is_nan8(x)) ? broadcast(__builtin_nanf("")) : value;
}

[[gnu::always_inline]] static inline F8 log_1_plus_8(F8 x) {
  const F8 sum = 1.0F + x;
  const F8 lost = (x - (sum - 1.0F)) / sum;
  const I8 exact = (x > 1e8F) | (sum <= 0);
  return log8(sum) + (exact ? F8{} : lost);
}

/// x times a quotient of two polynomials of x^2, as far as erf(x) differs from 1; within 3e-7.
[[gnu::always_inline]] static inline F8 erf8(F8 x) {
  const F8 last = broadcast(3.8325066566467285F);
  F8 inside = x > last ? last : x;
  inside = inside < -last ? -last : inside;
  const F8 z = inside * inside;
  F8 above = broadcast(2.1237322e-06F);
  above = above * z + 2.8619796e-04F;
  above = above * z + 3.6580483e-03F;
  above = above * z + 5.2433021e-02F;
  above = above * z + 1.8741608e-01F;
  above = above * z + 1.1283791F;
  F8 below = broadcast(3.8918573e-05F);
  below = below * z + 1.1432960e-03F;
  below = below * z + 1.4752088e-02F;
  below = below * z + 1.1294568e-01F;
  below = below * z + 4.9942580e-01F;
  below = below * z + 1.0F;
  // Exactly 1 beyond, however the products are rounded: 1 + erf(x) is multiplied by x where x is far below 0.
  F8 value = inside * above / below;
  value = value > 1.0F || x >= last ? broadcast(1.0F) : value;
  return value < -1.0F || x <= -last ? broadcast(-1.0F) : value;
}

[[gnu::always_inline]] static inline F8 tanh8(F8 x) {
  const F8 a = abs8(x);
  const F8 grown = exp_minus_1_8(2.0F * (a > 12.0F ? broadcast(12.0F) : a));
  const F8 value = grown / (grown + 2.0F);
  return is_nan8(x) ? x : with_sign8(value, x);
}

/// sin(x + quarter * pi / 2). Beyond 8192 the reduction of x would lose digits: the library's function then.
[[gnu::always_inline]] static inline F8 sine8(F8 x, int quarter) {
  const F8 a = abs8(x);
  bool large = false;
  for (int i = 0; i < kLanes; ++i) large |= !(a[i] < 8192.0F);
  if (large) {
    return quarter == 0 ? by_lane8(x, [](float v) { return __builtin_sinf(v); })
                        : by_lane8(x, [](float v) { return __builtin_cosf(v); });
  }
  const F8 turns = round8(x * 0.636619772F);
  F8 r = x - turns * 1.5703125F;
  r = r - turns * 4.837512969970703e-4F;
  r = r - turns * 7.549789948768648e-8F;
  const F8 z = r * r;
  F8 sine = broadcast(2.7557319e-6F);
  sine = sine * z - 1.9841270e-4F;
  sine = sine * z + 8.3333333e-3F;
  sine = sine * z - 1.6666667e-1F;
  sine = sine * z * r + r;
  F8 cosine = broadcast(-2.7557319e-7F);
  cosine = cosine * z + 2.4801587e-5F;
  cosine = cosine * z - 1.3888889e-3F;
  cosine = cosine * z + 4.1666667e-2F;
  cosine = cosine * z - 0.5F;
  cosine = cosine * z + 1.0F;
  const I8 phase = (__builtin_convertvector(turns, I8) + quarter) & 3;
  const F8 value = (phase & 1) != 0 ? cosine : sine;
  return (phase & 2) != 0 ? -value : value;
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
