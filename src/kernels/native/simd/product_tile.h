#pragma once

#include "kernels/native/simd/vector8.h"

/// The inner loop of matrix products: a tile of c of 6 rows by 16 columns stays in twelve registers while k
/// goes by.
namespace penstock::kernels::native::PENSTOCK_SIMD {

inline constexpr std::int64_t kTileRows = 6;
inline constexpr std::int64_t kTileColumns = 16;

/// sums = a b over `count` terms: a's element (i, k) at a[i * a_row + k * a_step], b's row k at b + k *
/// b_step. A function of its own, because all registers are for the sums.
template <bool Packed>
[[gnu::noinline]] static void sum_products(std::int64_t count, const float* a, std::int64_t a_row,
                                           std::int64_t a_step, const float* b, std::int64_t b_step,
                                           F8 (&sums)[kTileRows][2]) {
  if constexpr (Packed) {
    a_row = 1;
    a_step = kTileRows;
    b_step = kTileColumns;
  }
  F8 s00{}, s01{}, s10{}, s11{}, s20{}, s21{}, s30{}, s31{}, s40{}, s41{}, s50{}, s51{};
  const float* a3 = a + 3 * a_row;
#pragma GCC unroll 4
  for (; count > 0; --count) {
    const F8 b0 = load(b);
    const F8 b1 = load(b + kLanes);
    F8 value = broadcast(a[0]);
    s00 += value * b0;
    s01 += value * b1;
    value = broadcast(a[a_row]);
    s10 += value * b0;
    s11 += value * b1;
    value = broadcast(a[2 * a_row]);
    s20 += value * b0;
    s21 += value * b1;
    value = broadcast(a3[0]);
    s30 += value * b0;
    s31 += value * b1;
    value = broadcast(a3[a_row]);
    s40 += value * b0;
    s41 += value * b1;
    value = broadcast(a3[2 * a_row]);
    s50 += value * b0;
    s51 += value * b1;
    a += a_step;
    a3 += a_step;
    b += b_step;
  }
  sums[0][0] = s00, sums[0][1] = s01;
  sums[1][0] = s10, sums[1][1] = s11;
  sums[2][0] = s20, sums[2][1] = s21;
  sums[3][0] = s30, sums[3][1] = s31;
  sums[4][0] = s40, sums[4][1] = s41;
  sums[5][0] = s50, sums[5][1] = s51;
}

/// What becomes of a tile's sums: y = scale * sums (+ bias) (+ y), ReLU.
struct TileEnd {
  float scale = 1;
  const float* bias = nullptr;  ///< of the tile's first column; null: none
  bool add = false;
  bool relu = false;
};

[[gnu::always_inline]] static inline F8 finish_tile(F8 sum, F8 old, F8 bias, const TileEnd& end) {
  F8 value = broadcast(end.scale) * sum;
  if (end.bias != nullptr) value += bias;
  if (end.add) value += old;
  return end.relu ? relu(value) : value;
}

/// Writes the first `rows` by `columns` of a tile to c.
[[gnu::always_inline]] static inline void store_tile(const F8 (&sums)[kTileRows][2], float* c,
                                                     std::int64_t c_row, std::int64_t rows,
                                                     std::int64_t columns, const TileEnd& end) {
  if (rows == kTileRows && columns == kTileColumns) {
    const F8 bias0 = end.bias != nullptr ? load(end.bias) : F8{};
    const F8 bias1 = end.bias != nullptr ? load(end.bias + kLanes) : F8{};
#pragma GCC unroll 6
    for (int i = 0; i < kTileRows; ++i) {
      float* row = c + i * c_row;
      store(row, finish_tile(sums[i][0], end.add ? load(row) : F8{}, bias0, end));
      store(row + kLanes, finish_tile(sums[i][1], end.add ? load(row + kLanes) : F8{}, bias1, end));
    }
    return;
  }
  float whole[kTileRows * kTileColumns];
  for (int i = 0; i < kTileRows; ++i) {
    store(whole + i * kTileColumns, sums[i][0]);
    store(whole + i * kTileColumns + kLanes, sums[i][1]);
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    float* row = c + i * c_row;
    for (std::int64_t part = 0; part < columns; part += kLanes) {
      const std::int64_t count = columns - part < kLanes ? columns - part : kLanes;
      const F8 old = end.add ? load_part(row + part, count) : F8{};
      const F8 bias = end.bias != nullptr ? load_part(end.bias + part, count) : F8{};
      store_part(row + part, finish_tile(load(whole + i * kTileColumns + part), old, bias, end), count);
    }
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
