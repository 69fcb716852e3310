#pragma once

#include "kernels/native/simd/attention_scores.h"
#include "kernels/native/simd/pack.h"
#include "kernels/native/simd/product_tile.h"
#include "kernels/native/simd/vector_math.h"

/// What attention and its gradient share: products of blocks of scores.
namespace penstock::kernels::native::PENSTOCK_SIMD {

/// Queries and keys of a block of scores: whole tiles both ways, small enough for the second-level cache.
inline constexpr std::int64_t kBlockQueries = 48;
inline constexpr std::int64_t kBlockKeys = 192;

/// scores = scale * q k^T: `q` in panels of six rows, `k` in panels of 16 keys.
static inline void multiply_scores(const ScoreBlock& block, const float* q, const float* k, float* scores,
                                   float scale) {
  const std::int64_t width = block.at.shape.width;
  TileEnd end;
  end.scale = scale;
  for (std::int64_t key = 0; key < block.keys; key += kTileColumns) {
    for (std::int64_t row = 0; row < block.queries; row += kTileRows) {
      F8 sums[kTileRows][2];
      sum_products<true>(width, q + row * width, 1, kTileRows, k + key * width, kTileColumns, sums);
      store_tile(sums, scores + row * kBlockKeys + key, kBlockKeys, kTileRows, kTileColumns, end);
    }
  }
}

/// c[rows, columns] = scale * a b (+ c): a's element (i, k) at a[i * a_row + k * a_step], whole tiles of
/// which may be read; b in panels of 16 columns of `b_terms` terms, of which `terms` are summed.
static inline void multiply_into(std::int64_t rows, std::int64_t columns, std::int64_t terms, const float* a,
                                 std::int64_t a_row, std::int64_t a_step, const float* b,
                                 std::int64_t b_terms, float* c, std::int64_t c_row, bool add) {
  TileEnd end;
  end.add = add;
  for (std::int64_t column = 0; column < columns; column += kTileColumns) {
    for (std::int64_t row = 0; row < rows; row += kTileRows) {
      F8 sums[kTileRows][2];
      sum_products<false>(terms, a + row * a_row, a_row, a_step, b + column * b_terms, kTileColumns, sums);
      store_tile(sums, c + row * c_row + column, c_row, smaller(kTileRows, rows - row),
                 smaller(kTileColumns, columns - column), end);
    }
  }
}

/// `rows` rows of a head in panels of 16 rows, terms along the width.
static inline void pack_rows16(const float* from, std::int64_t row, std::int64_t rows, std::int64_t width,
                               float* to) {
  for (std::int64_t i = 0; i < rows; i += kTileColumns)
    pack_panel<kTileColumns>(from + i * row, row, 1, smaller(kTileColumns, rows - i), width, to + i * width);
}
/// The same in panels of six rows.
static inline void pack_rows6(const float* from, std::int64_t row, std::int64_t rows, std::int64_t width,
                              float* to) {
  for (std::int64_t i = 0; i < rows; i += kTileRows)
    pack_panel<kTileRows>(from + i * row, row, 1, smaller(kTileRows, rows - i), width, to + i * width);
}
/// Rows in panels of 16 elements of the width, terms along the rows.
static inline void pack_columns16(const float* from, std::int64_t row, std::int64_t rows, std::int64_t width,
                                  float* to) {
  for (std::int64_t i = 0; i < width; i += kTileColumns)
    pack_panel<kTileColumns>(from + i, 1, row, smaller(kTileColumns, width - i), rows, to + i * rows);
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
