#pragma once

#include "kernels/native/wide/panels16.h"

/// The inner loop of the products of attention: a tile of c of up to 14 rows by two vectors stays in 28 of
/// the 32 registers while the terms go by. Rows are shared out evenly, so that no tile is much smaller.
namespace penstock::kernels::native::PENSTOCK_SIMD {

inline constexpr int kMostRows = 14;

/// c = scale * a b (+ c) for one tile.
struct Tile {
  std::int64_t terms = 0;
  const float* a = nullptr;
  const float* b = nullptr;  ///< a panel
  float* c = nullptr;
  std::int64_t c_row = 0;
  float scale = 1;
  bool add = false;
  __mmask16 last_lanes = 0xFFFF;  ///< of the last vector, that are written
};

/// a's element (i, k) lies at a[i * Row + k * Step]. Known beforehand, so that no register is needed for
/// them.
template <int Row, int Step>
struct Strides {};

template <int Rows, int Vectors, int Row, int Step>
[[gnu::noinline]] static void multiply_tile(const Tile& tile) {
  F16 sums[Rows][Vectors];
#pragma GCC unroll 14
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) sums[i][v] = F16{};
  }
  const float* a = tile.a;
  const float* b = tile.b;
  for (std::int64_t k = tile.terms; k > 0; --k, a += Step, b += Vectors * kWide) {
    F16 column[Vectors];
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) column[v] = load16(b + v * kWide);
#pragma GCC unroll 14
    for (int i = 0; i < Rows; ++i) {
      const F16 value = broadcast16(a[i * Row]);
#pragma GCC unroll 2
      for (int v = 0; v < Vectors; ++v) sums[i][v] += value * column[v];
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
    for (int v = 0; v < Vectors; ++v) {
      const __mmask16 lanes = v == Vectors - 1 ? tile.last_lanes : __mmask16{0xFFFF};
      float* c = tile.c + i * tile.c_row + v * kWide;
      F16 value = tile.scale * sums[i][v];
      if (tile.add) value += load_lanes16(lanes, c);
      store_lanes16(lanes, c, value);
    }
  }
}

template <int Vectors, int Row, int Step, int Rows = kMostRows>
[[gnu::always_inline]] static inline void multiply_rows(std::int64_t rows, const Tile& tile) {
  if constexpr (Rows > 0) {
    if (rows == Rows) return multiply_tile<Rows, Vectors, Row, Step>(tile);
    multiply_rows<Vectors, Row, Step, Rows - 1>(rows, tile);
  }
}

/// How many of `left` rows the next tile takes.
static inline std::int64_t tile_rows(std::int64_t left) {
  const std::int64_t tiles = (left + kMostRows - 1) / kMostRows;
  return (left + tiles - 1) / tiles;
}

/// c[rows, columns] = scale * a b (+ c): b in panels of `b_terms` terms, of which `terms` are summed. Calls
/// meanwhile() with each tile.
template <int Row, int Step, typename Meanwhile>
static void multiply(Strides<Row, Step> /*a*/, std::int64_t rows, std::int64_t columns, std::int64_t b_terms,
                     const Tile& all, const Meanwhile& meanwhile) {
  for (std::int64_t column = 0; column < columns; column += kPanel) {
    const std::int64_t left = columns - column;
    Tile tile = all;
    tile.b = all.b + column * b_terms;
    tile.last_lanes = first_lanes16(left > kWide ? left - kWide : left);
    for (std::int64_t row = 0; row < rows;) {
      const std::int64_t count = tile_rows(rows - row);
      meanwhile();
      tile.a = all.a + row * Row;
      tile.c = all.c + row * all.c_row + column;
      if (left > kWide) {
        multiply_rows<2, Row, Step>(count, tile);
      } else {
        multiply_rows<1, Row, Step>(count, tile);
      }
      row += count;
    }
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
