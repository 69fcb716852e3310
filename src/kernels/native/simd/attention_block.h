#pragma once

#include "kernels/native/attention.h"
#include "kernels/native/simd/pack.h"
#include "kernels/native/simd/philox8.h"
#include "kernels/native/simd/product_tile.h"
#include "kernels/native/simd/threads.h"
#include "kernels/native/simd/vector_math.h"

/// What attention and its gradient share: blocks of scores.
namespace penstock::kernels::native::PENSTOCK_SIMD {

/// Queries and keys of a block of scores: whole tiles both ways, small enough for the second-level cache.
inline constexpr std::int64_t kBlockQueries = 48;
inline constexpr std::int64_t kBlockKeys = 192;

static inline std::int64_t round_up(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

/// Hands out parts of a scratch, each on a cache line of its own; without a scratch it only counts.
class ScratchCursor {
 public:
  explicit ScratchCursor(float* scratch) : scratch_(scratch) {}
  float* take(std::int64_t floats) {
    float* part = scratch_ != nullptr ? scratch_ + used_ : nullptr;
    used_ += round_up(floats, 16);
    return part;
  }
  std::int64_t used() const { return used_; }

 private:
  float* scratch_;
  std::int64_t used_ = 0;
};

/// One head of one sample, and its block of scores from (query, key) on.
struct ScoreBlock {
  const Attention& at;
  std::int64_t sample, head;
  std::int64_t query, queries;
  std::int64_t key, keys;
  float* scores;  ///< kBlockQueries rows of kBlockKeys

  /// How many of the block's keys query `row` of the block may see, mask aside.
  std::int64_t seen(std::int64_t row) const {
    return at.shape.causal ? larger(0, smaller(keys, query + row - key + 1)) : keys;
  }
};

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

/// Adds the mask to a row of scores, or hides what it hides.
static inline void mask_row(const ScoreBlock& block, std::int64_t row, std::int64_t seen, float* scores) {
  const AttentionShape& shape = block.at.shape;
  if (shape.mask == MaskKind::none) return;
  const std::int64_t at = block.sample * shape.mask_steps.batch + block.head * shape.mask_steps.head +
                          (block.query + row) * shape.mask_steps.row + block.key;
  if (shape.mask == MaskKind::added) {
    const float* mask = static_cast<const float*>(block.at.mask) + at;
    for (std::int64_t i = 0; i < seen; ++i) scores[i] += mask[i];
  } else {
    const auto* mask = static_cast<const std::uint8_t*>(block.at.mask) + at;
    for (std::int64_t i = 0; i < seen; ++i) scores[i] = mask[i] != 0 ? scores[i] : -__builtin_inff();
  }
}

/// factors[i] = 0 where key i of the block is dropped for the row, else 1 / (1 - probability). A row's
/// elements begin at a multiple of four.
static inline void draw_row(const ScoreBlock& block, std::int64_t row, float* factors) {
  const AttentionShape& shape = block.at.shape;
  const std::int64_t rows =
      ((block.at.first_sample + block.sample) * shape.heads + block.head) * shape.queries;
  const std::int64_t first = (rows + block.query + row) * round_up(shape.keys, 4) + block.key;
  const float kept = 1 / (1 - shape.dropout);
  for (std::int64_t key = 0; key < block.keys; key += 32) {
    std::uint32_t words[32];
    draw_blocks(block.at.random, static_cast<std::uint64_t>(first + key) / 4, words);
    for (std::int64_t i = 0; i < 32; ++i) {
      const float unit = static_cast<float>(words[i] >> 8U) * 0x1p-24F;
      factors[key + i] = unit >= shape.dropout ? kept : 0.0F;
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
