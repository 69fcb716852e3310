#include "kernels/native/wide/attention_rows16.h"
#include "kernels/native/wide/loops.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// Of a block: so many that the sums over them are worth their loads and stores.
constexpr std::int64_t kMostQueries = 72;

/// One thread's scratch: a block of keys, a block of queries, their scores.
struct Buffers {
  Buffers(const AttentionShape& shape, float* scratch)
      : cursor(scratch),
        width16(round_up(shape.width, kWide)),
        block_keys(even_block(shape.keys, kMostKeys, kPanel)),
        block_queries(even_block(shape.queries, kMostQueries, 1)) {
    for (float** keys : {&k, &v}) *keys = cursor.take(block_keys * shape.width);
    for (float** keys : {&k_columns, &dk, &dv}) *keys = cursor.take(block_keys * width16);
    for (float** queries : {&q, &dy}) *queries = cursor.take(shape.width * kWide);
    for (float** queries : {&q_columns, &dy_columns}) *queries = cursor.take(block_queries * width16);
    for (float** block : {&scores, &gradients}) *block = cursor.take(block_queries * kScoreRow);
  }
  ScratchCursor cursor;
  std::int64_t width16, block_keys, block_queries;
  float *k, *v;                   ///< panels of keys
  float* k_columns;               ///< panels along the width
  float *dk, *dv;                 ///< rows
  float *q, *dy;                  ///< a tile's queries, turned
  float *q_columns, *dy_columns;  ///< a block's queries in panels along the width
  float *scores, *gradients;
};

float dot(const float* a, const float* b, std::int64_t count) {
  F16 sum{};
  for (std::int64_t i = 0; i < count; i += kWide) {
    const __mmask16 lanes = first_lanes16(count - i);
    sum += load_lanes16(lanes, a + i) * load_lanes16(lanes, b + i);
  }
  return sum_lanes16(sum);
}

/// What a row of the gradient needs of its query.
struct RowState {
  float logsum2;     ///< in powers of two
  float projection;  ///< of dy on y
};

/// Scores become probabilities (dropped ones 0, kept ones scaled), gradients of probabilities those of
/// scores; both are 0 from the last key that is seen up to `end`.
void differentiate_row(const ScoreBlock& block, std::int64_t row, const RowState& state, std::int64_t end,
                       float* gradients) {
  const AttentionShape& shape = block.at.shape;
  float* scores = block.scores + row * kScoreRow;
  const std::int64_t seen = block.seen(row);
  mask_row(block, row, seen, scores);
  float factors[kMostKeys];
  if (shape.dropout > 0) draw_row(block, row, factors);
  std::int64_t i = 0;
  for (; i < seen; i += kWide) {
    const F16 probability = exp2_16(load_scores(scores, i, seen) * kLog2OfE - state.logsum2);
    F16 gradient = load16(gradients + i);
    F16 used = probability;
    if (shape.dropout > 0) {
      const F16 factor = load16(factors + i);
      gradient *= factor;
      used *= factor;
    }
    store16(scores + i, used);
    store16(gradients + i, probability * (gradient - state.projection) * shape.scale);
  }
  for (; i < end; i += kWide) {
    store16(scores + i, F16{});
    store16(gradients + i, F16{});
  }
}

/// A tile of queries against the `packed` keys: their probabilities, gradients of scores, and part of dq.
/// `end`: how many keys are read of them.
void differentiate_tile(const AttentionBackward& back, const Buffers& buffers, const ScoreBlock& block,
                        float* gradients, std::int64_t packed, std::int64_t end, RowsAhead& ahead) {
  const Attention& at = back.forward;
  const AttentionShape& shape = at.shape;
  const std::int64_t q_at = block.query_at(shape.q);
  const std::int64_t y_at = block.query_at(shape.y);
  turn_rows16(at.q + q_at, shape.q.row, block.queries, shape.width, buffers.q, kWide);
  turn_rows16(back.dy + y_at, shape.y.row, block.queries, shape.width, buffers.dy, kWide);
  prefetch_stores(back.dq + q_at, shape.q.row, block.queries, shape.width);
  multiply_scores(block, packed, buffers.q, buffers.k, block.scores, shape.scale, ahead);
  multiply_scores(block, packed, buffers.dy, buffers.v, gradients, 1, ahead);
  const float* logsum = at.logsum + (block.sample * shape.heads + block.head) * shape.queries + block.query;
  RowState states[kMostRows];
  for (std::int64_t row = 0; row < block.queries; ++row) {
    const std::int64_t y_row = y_at + row * shape.y.row;
    states[row] = {logsum[row] * kLog2OfE, dot(at.y + y_row, back.dy + y_row, shape.width)};
  }
  for (std::int64_t row = 0; row < block.queries; ++row)
    differentiate_row(block, row, states[row], end, gradients + row * kScoreRow);
  Tile tile{block.keys, gradients, buffers.k_columns, back.dq + q_at, shape.q.row};
  tile.add = block.key > 0;
  multiply(ScoreRows{}, block.queries, shape.width, packed, tile, [&] { ahead.fetch(); });
}

/// A block of queries against the block of keys that is packed: adds to dk, dv and dq.
void differentiate_block(const AttentionBackward& back, const Buffers& buffers, const ScoreBlock& block,
                         RowsAhead& ahead) {
  const Attention& at = back.forward;
  const AttentionShape& shape = at.shape;
  const std::int64_t q_at = block.query_at(shape.q);
  const std::int64_t y_at = block.query_at(shape.y);
  pack_columns(at.q + q_at, shape.q.row, block.queries, shape.width, buffers.q_columns);
  pack_columns(back.dy + y_at, shape.y.row, block.queries, shape.width, buffers.dy_columns);
  const std::int64_t seen = block.seen(block.queries - 1);  // by any of the queries
  for (std::int64_t row = 0; row < block.queries;) {
    ScoreBlock tile = block;
    tile.query = block.query + row;
    tile.queries = tile_rows(block.queries - row);
    tile.keys = block.seen(row + tile.queries - 1);
    tile.scores = buffers.scores + row * kScoreRow;
    differentiate_tile(back, buffers, tile, buffers.gradients + row * kScoreRow, block.keys, seen, ahead);
    row += tile.queries;
  }
  Tile tile{block.queries, buffers.scores, buffers.dy_columns, buffers.dv, buffers.width16};
  tile.add = true;
  multiply(ScoreColumns{}, seen, buffers.width16, block.queries, tile, [&] { ahead.fetch(); });
  tile.a = buffers.gradients;
  tile.b = buffers.q_columns;
  tile.c = buffers.dk;
  multiply(ScoreColumns{}, seen, buffers.width16, block.queries, tile, [&] { ahead.fetch(); });
}

void store_rows(const float* from, std::int64_t from_row, std::int64_t rows, std::int64_t width, float* to,
                std::int64_t to_row) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < width; i += kWide)
      store_lanes16(first_lanes16(width - i), to + row * to_row + i, load16(from + row * from_row + i));
  }
}

/// All that one head of keys and values is read for, in an order that depends on nothing but the shape.
void differentiate_head(const AttentionBackward& back, const Buffers& buffers, std::int64_t unit,
                        std::int64_t next_unit) {
  const Attention& at = back.forward;
  const AttentionShape& shape = at.shape;
  const std::int64_t group = shape.heads / shape.kv_heads;
  const std::int64_t sample = unit / shape.kv_heads;
  const std::int64_t kv_head = unit % shape.kv_heads;
  for (std::int64_t key = 0; key < shape.keys; key += buffers.block_keys) {
    const std::int64_t keys = smaller(buffers.block_keys, shape.keys - key);
    const std::int64_t k_at = row_at(shape.k, sample, kv_head, key);
    const std::int64_t v_at = row_at(shape.v, sample, kv_head, key);
    pack_rows(at.k + k_at, shape.k.row, keys, shape.width, buffers.k);
    pack_rows(at.v + v_at, shape.v.row, keys, shape.width, buffers.v);
    pack_columns(at.k + k_at, shape.k.row, keys, shape.width, buffers.k_columns);
    prefetch_stores(back.dk + k_at, shape.k.row, keys, shape.width);
    prefetch_stores(back.dv + v_at, shape.v.row, keys, shape.width);
    for (std::int64_t i = 0; i < keys * buffers.width16; i += kWide) {
      store16(buffers.dk + i, F16{});
      store16(buffers.dv + i, F16{});
    }
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const bool last = head + 1 == (kv_head + 1) * group;
      RowsAhead ahead(at, last ? next_unit * group : sample * shape.heads + head + 1);
      ahead.add(at.y, shape.y);
      ahead.add(back.dy, shape.y);
      const std::int64_t begin = shape.causal ? key / buffers.block_queries * buffers.block_queries : 0;
      for (std::int64_t query = begin; query < shape.queries; query += buffers.block_queries) {
        const std::int64_t queries = smaller(buffers.block_queries, shape.queries - query);
        differentiate_block(back, buffers, {at, sample, head, query, queries, key, keys, buffers.scores},
                            ahead);
      }
    }
    store_rows(buffers.dk, buffers.width16, keys, shape.width, back.dk + k_at, shape.k.row);
    store_rows(buffers.dv, buffers.width16, keys, shape.width, back.dv + v_at, shape.v.row);
  }
}

}  // namespace

std::int64_t attention_backward_floats(const AttentionShape& shape) {
  return Buffers(shape, nullptr).cursor.used();
}

void attention_backward(const AttentionBackward& back) {
  const Attention& at = back.forward;
#pragma omp parallel num_threads(at.threads)
  {
    const Buffers buffers(at.shape, at.scratch + omp_get_thread_num() * attention_backward_floats(at.shape));
#pragma omp for schedule(dynamic)
    for (std::int64_t unit = 0; unit < at.shape.batch * at.shape.kv_heads; ++unit)
      differentiate_head(back, buffers, unit, unit + omp_get_num_threads());
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
