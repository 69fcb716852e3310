#pragma once

#include "kernels/native/wide/vector16.h"

/// Second operands of products in panels of 32 columns, the terms one behind the other, short panels filled
/// up with zeros; a last panel of at most 16 columns is only so wide. First operands in panels of 16 rows.
namespace penstock::kernels::native::PENSTOCK_SIMD {

inline constexpr std::int64_t kPanel = 2 * kWide;

/// Columns that a panel holds of which `left` are wanted.
static inline std::int64_t panel_columns(std::int64_t left) {
  return left > kWide ? kPanel : kWide;
}

/// Exchanges the lanes of a that have bit `Bit` with those of b that have not.
template <int Bit>
[[gnu::always_inline]] static inline void exchange_lanes16(F16& a, F16& b) {
  I16 first{};
  I16 second{};
  for (int i = 0; i < kWide; ++i) {
    first[i] = (i & Bit) == 0 ? i : kWide + i - Bit;
    second[i] = (i & Bit) == 0 ? i + Bit : kWide + i;
  }
  const auto from_a = reinterpret_cast<__m512>(a);
  const auto from_b = reinterpret_cast<__m512>(b);
  a = reinterpret_cast<F16>(_mm512_permutex2var_ps(from_a, reinterpret_cast<__m512i>(first), from_b));
  b = reinterpret_cast<F16>(_mm512_permutex2var_ps(from_a, reinterpret_cast<__m512i>(second), from_b));
}
template <int Bit>
[[gnu::always_inline]] static inline void exchange_rows16(F16 (&rows)[kWide]) {
#pragma GCC unroll 16
  for (int i = 0; i < kWide; ++i) {
    if ((i & Bit) == 0) exchange_lanes16<Bit>(rows[i], rows[i + Bit]);
  }
}
/// rows[i] becomes lane i of all sixteen.
[[gnu::always_inline]] static inline void transpose16(F16 (&rows)[kWide]) {
  exchange_rows16<8>(rows);
  exchange_rows16<4>(rows);
  exchange_rows16<2>(rows);
  exchange_rows16<1>(rows);
}

/// to[k * to_row + i] = from[i * row + k] for i < rows and k < width; for the other i below 16 as for the
/// last row, which asks for no branch: who reads them has no use for them.
static inline void turn_rows16(const float* from, std::int64_t row, std::int64_t rows, std::int64_t width,
                               float* to, std::int64_t to_row) {
  for (std::int64_t k = 0; k < width; k += kWide) {
    const std::int64_t count = smaller(kWide, width - k);
    const __mmask16 lanes = first_lanes16(count);
    F16 turned[kWide];
#pragma GCC unroll 16
    for (int i = 0; i < kWide; ++i) turned[i] = load_lanes16(lanes, from + smaller(i, rows - 1) * row + k);
    transpose16(turned);
    float* at = to + k * to_row;
    if (count == kWide) {
#pragma GCC unroll 16
      for (int i = 0; i < kWide; ++i) store16(at + i * to_row, turned[i]);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < kWide; ++i) {
        if (i < count) store16(at + i * to_row, turned[i]);
      }
    }
  }
}

/// Panels whose columns are rows of a head, terms along its width.
static inline void pack_rows(const float* from, std::int64_t row, std::int64_t rows, std::int64_t width,
                             float* to) {
  for (std::int64_t first = 0; first < rows; first += kPanel) {
    const std::int64_t columns = panel_columns(rows - first);
    for (std::int64_t i = 0; i < columns; i += kWide) {
      turn_rows16(from + (first + i) * row, row, smaller(kWide, rows - first - i), width,
                  to + first * width + i, columns);
    }
  }
}

/// Panels whose columns go along the width of a head, terms along its rows.
static inline void pack_columns(const float* from, std::int64_t row, std::int64_t rows, std::int64_t width,
                                float* to) {
  for (std::int64_t first = 0; first < width; first += kPanel) {
    const std::int64_t columns = panel_columns(width - first);
    const __mmask16 lanes0 = first_lanes16(width - first);
    const __mmask16 lanes1 = first_lanes16(larger(0, width - first - kWide));
    float* panel = to + first * rows;
    for (std::int64_t i = 0; i < rows; ++i, panel += columns) {
      const float* at = from + i * row + first;
      store16(panel, load_lanes16(lanes0, at));
      if (columns == kPanel) store16(panel + kWide, load_lanes16(lanes1, at + kWide));
    }
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
