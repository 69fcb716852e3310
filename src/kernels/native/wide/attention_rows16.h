#pragma once

#include "kernels/native/simd/attention_scores.h"
#include "kernels/native/wide/tile16.h"
#include "kernels/native/wide/vector_math16.h"

/// What attention and its gradient share: scores of a few queries.
namespace penstock::kernels::native::PENSTOCK_SIMD {

inline constexpr std::int64_t kMostKeys = 256;  ///< of a block; whole panels
/// A row of scores: an odd number of cache lines, so that rows do not fall on each other's place in the
/// cache.
inline constexpr int kScoreRow = 272;

using TurnedRows = Strides<1, kWide>;
using ScoreRows = Strides<kScoreRow, 1>;
using ScoreColumns = Strides<1, kScoreRow>;

/// `count` in blocks of at most `most`, all of about one size, in whole multiples of `unit`.
static inline std::int64_t even_block(std::int64_t count, std::int64_t most, std::int64_t unit) {
  const std::int64_t blocks = larger(1, (count + most - 1) / most);
  return round_up((count + blocks - 1) / blocks, unit);
}

/// The rows of the head whose turn is next, asked for a few at a time while this one is worked on: each is a
/// short piece of memory, so the processor does not see the next one coming by itself.
class RowsAhead {
 public:
  /// What both attention and its gradient read. `unit`: sample * heads + head.
  RowsAhead(const Attention& at, std::int64_t unit)
      : width_(at.shape.width), sample_(unit / at.shape.heads), head_(unit % at.shape.heads) {
    const AttentionShape& shape = at.shape;
    if (sample_ >= shape.batch) return;
    rows_ = smaller(shape.queries, shape.keys);
    add(at.q, shape.q, head_);
    add(at.k, shape.k, head_ * shape.kv_heads / shape.heads);
    add(at.v, shape.v, head_ * shape.kv_heads / shape.heads);
  }
  void add(const float* x, const HeadSteps& steps) { add(x, steps, head_); }

  void fetch() {
    const std::int64_t end = smaller(rows_, next_ + kAtATime);
    for (; next_ < end; ++next_) {
      for (int i = 0; i < count_; ++i) {
        const float* row = from_[i] + next_ * steps_[i];
        for (std::int64_t k = 0; k < width_; k += kWide) __builtin_prefetch(row + k, 0, 2);
      }
    }
  }

 private:
  static constexpr std::int64_t kAtATime = 2;

  void add(const float* x, const HeadSteps& steps, std::int64_t head) {
    if (rows_ == 0) return;  // there is no next head
    from_[count_] = x + row_at(steps, sample_, head, 0);
    steps_[count_++] = steps.row;
  }

  std::int64_t width_, sample_, head_;
  std::int64_t rows_ = 0;
  std::int64_t next_ = 0;
  const float* from_[5];
  std::int64_t steps_[5];
  int count_ = 0;
};

/// scores = scale * q k^T for the block's few queries, which are turned, and for those of the `packed` keys
/// in panels that it has.
static inline void multiply_scores(const ScoreBlock& block, std::int64_t packed, const float* q,
                                   const float* k, float* scores, float scale, RowsAhead& ahead) {
  const std::int64_t width = block.at.shape.width;
  const std::int64_t columns = smaller(round_up(block.keys, kPanel), round_up(packed, kWide));
  Tile tile{width, q, k, scores, kScoreRow};
  tile.scale = scale;
  multiply(TurnedRows{}, block.queries, columns, width, tile, [&] { ahead.fetch(); });
}

/// Rows that are written later: stores that miss would hold up those behind them.
static inline void prefetch_stores(const float* to, std::int64_t row, std::int64_t rows, std::int64_t width) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t k = 0; k < width; k += kWide) __builtin_prefetch(to + i * row + k, 1, 2);
  }
}
/// Sixteen scores from the i-th on; minus infinity for those that are not seen.
[[gnu::always_inline]] static inline F16 load_scores(const float* scores, std::int64_t i, std::int64_t seen) {
  if (i + kWide <= seen) return load16(scores + i);
  const __m512 hidden = _mm512_set1_ps(-__builtin_inff());
  return reinterpret_cast<F16>(_mm512_mask_loadu_ps(hidden, first_lanes16(larger(0, seen - i)), scores + i));
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
