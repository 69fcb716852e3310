#pragma once

#include "kernels/native/product.h"
#include "kernels/native/simd/threads.h"
#include "kernels/native/simd/vector8.h"

/// Operands of a product in the order in which its inner loop reads them: panels of some rows (or columns)
/// with the terms one behind the other, short panels filled up with zeros.
namespace penstock::kernels::native::PENSTOCK_SIMD {

/// rows[i] becomes lane i of all eight.
[[gnu::always_inline]] static inline void transpose8(F8 (&r)[8]) {
#if defined(__AVX2__)
  const auto low = [](F8 a, F8 b) {
    return _mm256_unpacklo_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b));
  };
  const auto high = [](F8 a, F8 b) {
    return _mm256_unpackhi_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b));
  };
  const __m256 t0 = low(r[0], r[1]), t1 = high(r[0], r[1]), t2 = low(r[2], r[3]), t3 = high(r[2], r[3]);
  const __m256 t4 = low(r[4], r[5]), t5 = high(r[4], r[5]), t6 = low(r[6], r[7]), t7 = high(r[6], r[7]);
  const __m256 u0 = _mm256_shuffle_ps(t0, t2, 0x44), u1 = _mm256_shuffle_ps(t0, t2, 0xEE);
  const __m256 u2 = _mm256_shuffle_ps(t1, t3, 0x44), u3 = _mm256_shuffle_ps(t1, t3, 0xEE);
  const __m256 u4 = _mm256_shuffle_ps(t4, t6, 0x44), u5 = _mm256_shuffle_ps(t4, t6, 0xEE);
  const __m256 u6 = _mm256_shuffle_ps(t5, t7, 0x44), u7 = _mm256_shuffle_ps(t5, t7, 0xEE);
  r[0] = reinterpret_cast<F8>(_mm256_permute2f128_ps(u0, u4, 0x20));
  r[1] = reinterpret_cast<F8>(_mm256_permute2f128_ps(u1, u5, 0x20));
  r[2] = reinterpret_cast<F8>(_mm256_permute2f128_ps(u2, u6, 0x20));
  r[3] = reinterpret_cast<F8>(_mm256_permute2f128_ps(u3, u7, 0x20));
  r[4] = reinterpret_cast<F8>(_mm256_permute2f128_ps(u0, u4, 0x31));
  r[5] = reinterpret_cast<F8>(_mm256_permute2f128_ps(u1, u5, 0x31));
  r[6] = reinterpret_cast<F8>(_mm256_permute2f128_ps(u2, u6, 0x31));
  r[7] = reinterpret_cast<F8>(_mm256_permute2f128_ps(u3, u7, 0x31));
#else
  for (int i = 0; i < 8; ++i) {
    for (int j = i + 1; j < 8; ++j) {
      const float kept = r[i][j];
      r[i][j] = r[j][i];
      r[j][i] = kept;
    }
  }
#endif
}

/// One panel: to[k * Width + i] = from[i * unit + k * term] for i < units, 0 for the others. Two floats
/// behind the panel may be written over where Width is 6.
template <int Width>
static inline void pack_panel(const float* from, std::int64_t unit, std::int64_t term, std::int64_t units,
                              std::int64_t terms, float* to) {
  std::int64_t k = 0;
  if (units == Width && unit == 1) {
    for (; k < terms; ++k, from += term, to += Width) {
      if constexpr (Width == 16) {
        store(to, load(from));
        store(to + kLanes, load(from + kLanes));
      } else {
        for (int i = 0; i < Width; ++i) to[i] = from[i];
      }
    }
    return;
  }
  if (units == Width && term == 1) {
    for (; k + 8 <= terms; k += 8, from += 8) {
#pragma GCC unroll 2
      for (int part = 0; part < Width; part += 8) {
        F8 rows[8];
        for (int i = 0; i < 8; ++i) rows[i] = part + i < Width ? load(from + (part + i) * unit) : F8{};
        transpose8(rows);
        for (int i = 0; i < 8; ++i) store(to + i * Width + part, rows[i]);
      }
      to += static_cast<std::ptrdiff_t>(8) * Width;
    }
  }
  for (; k < terms; ++k, from += term, to += Width) {
    for (std::int64_t i = 0; i < Width; ++i) to[i] = i < units ? from[i * unit] : 0.0F;
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
