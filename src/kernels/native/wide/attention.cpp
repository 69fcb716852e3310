#include "kernels/native/wide/attention_rows16.h"
#include "kernels/native/wide/loops.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// One thread's scratch. A tile of queries goes through all keys at once: its scores stay in the first-level
/// cache, keys and values in the second.
struct Buffers {
  Buffers(const AttentionShape& shape, float* scratch)
      : cursor(scratch),
        width16(round_up(shape.width, kWide)),
        block_keys(even_block(shape.keys, kMostKeys, kPanel)) {
    k = cursor.take(round_up(shape.keys, kWide) * shape.width);
    v = cursor.take(shape.keys * width16);
    q = cursor.take(shape.width * kWide);
    scores = cursor.take(std::int64_t{kMostRows} * kScoreRow);
    y = cursor.take(kMostRows * width16);
  }
  ScratchCursor cursor;
  std::int64_t width16, block_keys;
  float* k;  ///< panels of keys
  float* v;  ///< for each block of keys, panels along the width
  float* q;  ///< a tile's queries, turned
  float* scores;
  float* y;  ///< a tile's outputs before the division
};

/// Running maximum and sum of exponentials of a tile's queries.
struct RunningSums {
  float largest[kMostRows];
  float sum[kMostRows];
};

float largest_score(const ScoreBlock& block, std::int64_t row, float before) {
  float* scores = block.scores + row * kScoreRow;
  const std::int64_t seen = block.seen(row);
  mask_row(block, row, seen, scores);
  F16 largest = broadcast16(before);
  for (std::int64_t i = 0; i < seen; i += kWide) largest = larger16(largest, load_scores(scores, i, seen));
  return largest_lane16(largest);
}

/// Turns a row's scores into exponentials under the new maximum; what was summed before is scaled by the
/// result.
float exponentials(const ScoreBlock& block, std::int64_t row, float largest, RunningSums& running) {
  float* scores = block.scores + row * kScoreRow;
  const std::int64_t seen = block.seen(row);
  // A row that sees nothing yet stays as it is: its sum is 0.
  const float shift = largest == -__builtin_inff() ? 0.0F : largest;
  const float shift2 = shift * kLog2OfE;
  F16 sum{};
  for (std::int64_t i = 0; i < block.keys; i += kWide) {
    const F16 value = exp2_16(load_scores(scores, i, seen) * kLog2OfE - shift2);
    store16(scores + i, value);
    sum += value;
  }
  const float before = running.largest[row];
  const float factor = before == -__builtin_inff() ? 0.0F : __builtin_expf(before - shift);
  running.sum[row] = running.sum[row] * factor + sum_lanes16(sum);
  running.largest[row] = largest;
  if (block.at.shape.dropout > 0) {
    float factors[kMostKeys];
    draw_row(block, row, factors);
    for (std::int64_t i = 0; i < block.keys; ++i) scores[i] *= factors[i];
  }
  return factor;
}

void weigh(const ScoreBlock& block, const Buffers& buffers, RunningSums& running) {
  // All maxima before all exponentials, so that one row does not wait for the other's lanes.
  float largest[kMostRows];
  for (std::int64_t row = 0; row < block.queries; ++row)
    largest[row] = largest_score(block, row, running.largest[row]);
  for (std::int64_t row = 0; row < block.queries; ++row) {
    const float factor = exponentials(block, row, largest[row], running);
    if (block.key == 0) continue;
    float* y = buffers.y + row * buffers.width16;
    for (std::int64_t i = 0; i < buffers.width16; i += kWide) store16(y + i, load16(y + i) * factor);
  }
}

void store_outputs(const ScoreBlock& block, const Buffers& buffers, const RunningSums& running) {
  const Attention& at = block.at;
  const AttentionShape& shape = at.shape;
  float* y = at.y + block.query_at(shape.y);
  float* logsum = at.logsum + (block.sample * shape.heads + block.head) * shape.queries + block.query;
  for (std::int64_t row = 0; row < block.queries; ++row, y += shape.y.row) {
    const float sum = running.sum[row];
    const float factor = sum > 0 ? 1 / sum : 0.0F;
    const float* from = buffers.y + row * buffers.width16;
    for (std::int64_t i = 0; i < shape.width; i += kWide)
      store_lanes16(first_lanes16(shape.width - i), y + i, load16(from + i) * factor);
    // A query that sees no key: its exponentials are 0 for any log-sum but infinity.
    logsum[row] = sum > 0 ? running.largest[row] + __builtin_logf(sum) : 0.0F;
  }
}

void attend_queries(const Buffers& buffers, ScoreBlock block, RowsAhead& ahead) {
  const Attention& at = block.at;
  const AttentionShape& shape = at.shape;
  RunningSums running;
  for (std::int64_t row = 0; row < kMostRows; ++row) {
    running.largest[row] = -__builtin_inff();
    running.sum[row] = 0;
  }
  const float* q = at.q + block.query_at(shape.q);
  turn_rows16(q, shape.q.row, block.queries, shape.width, buffers.q, kWide);
  prefetch_stores(at.y + block.query_at(shape.y), shape.y.row, block.queries, shape.width);
  const std::int64_t last = shape.causal ? smaller(shape.keys, block.query + block.queries) : shape.keys;
  for (block.key = 0; block.key < last; block.key += buffers.block_keys) {
    const std::int64_t packed = smaller(buffers.block_keys, shape.keys - block.key);
    block.keys = smaller(packed, last - block.key);
    multiply_scores(block, packed, buffers.q, buffers.k + block.key * shape.width, block.scores, shape.scale,
                    ahead);
    weigh(block, buffers, running);
    Tile tile{block.keys, block.scores, buffers.v + block.key * buffers.width16, buffers.y, buffers.width16};
    tile.add = block.key > 0;
    multiply(ScoreRows{}, block.queries, buffers.width16, packed, tile, [&] { ahead.fetch(); });
  }
  store_outputs(block, buffers, running);
}

void attend_head(const Attention& at, const Buffers& buffers, std::int64_t unit, std::int64_t next) {
  const AttentionShape& shape = at.shape;
  const std::int64_t sample = unit / shape.heads;
  const std::int64_t head = unit % shape.heads;
  const std::int64_t kv_head = head * shape.kv_heads / shape.heads;
  const float* k = at.k + row_at(shape.k, sample, kv_head, 0);
  const float* v = at.v + row_at(shape.v, sample, kv_head, 0);
  for (std::int64_t key = 0; key < shape.keys; key += buffers.block_keys) {
    const std::int64_t keys = smaller(buffers.block_keys, shape.keys - key);
    pack_rows(k + key * shape.k.row, shape.k.row, keys, shape.width, buffers.k + key * shape.width);
    pack_columns(v + key * shape.v.row, shape.v.row, keys, shape.width, buffers.v + key * buffers.width16);
  }
  RowsAhead ahead(at, next);
  for (std::int64_t query = 0; query < shape.queries;) {
    const std::int64_t queries = tile_rows(shape.queries - query);
    attend_queries(buffers, {at, sample, head, query, queries, 0, 0, buffers.scores}, ahead);
    query += queries;
  }
}

}  // namespace

std::int64_t attention_floats(const AttentionShape& shape) {
  return Buffers(shape, nullptr).cursor.used();
}

void attention(const Attention& at) {
  const AttentionShape& shape = at.shape;
#pragma omp parallel num_threads(at.threads)
  {
    const Buffers buffers(shape, at.scratch + omp_get_thread_num() * attention_floats(shape));
#pragma omp for schedule(dynamic)
    for (std::int64_t unit = 0; unit < shape.batch * shape.heads; ++unit)
      attend_head(at, buffers, unit, unit + omp_get_num_threads());
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
