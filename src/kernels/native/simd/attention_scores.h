#pragma once

#include "kernels/native/attention.h"
#include "kernels/native/simd/philox8.h"
#include "kernels/native/simd/threads.h"

/// Blocks of scores, their masks and their dropout, for any width of vectors.
namespace penstock::kernels::native::PENSTOCK_SIMD {

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

/// Where a row of a head of a sample begins. Not a member of HeadSteps, because each build has its own.
static inline std::int64_t row_at(const HeadSteps& steps, std::int64_t sample, std::int64_t head,
                                  std::int64_t row) {
  return sample * steps.batch + head * steps.head + row * steps.row;
}

/// One head of one sample, and its block of scores from (query, key) on.
struct ScoreBlock {
  const Attention& at;
  std::int64_t sample, head;
  std::int64_t query, queries;
  std::int64_t key, keys;
  float* scores;  ///< rows of the build's own length

  /// Where the block's first query, or what belongs to it, begins.
  std::int64_t query_at(const HeadSteps& steps) const { return row_at(steps, sample, head, query); }
  /// How many of the block's keys query `row` of the block may see, mask aside.
  std::int64_t seen(std::int64_t row) const {
    return at.shape.causal ? larger(0, smaller(keys, query + row - key + 1)) : keys;
  }
};

/// Adds the mask to a row of scores, or hides what it hides.
static inline void mask_row(const ScoreBlock& block, std::int64_t row, std::int64_t seen, float* scores) {
  const AttentionShape& shape = block.at.shape;
  if (shape.mask == MaskKind::none) return;
  const std::int64_t at = block.query_at(shape.mask_steps) + row * shape.mask_steps.row + block.key;
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

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
