#include "kernels/native/simd/attention_block.h"
#include "kernels/native/simd/text_loops.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// One thread's scratch: a block of keys, a block of queries, their scores.
struct Buffers {
  Buffers(const AttentionShape& shape, float* scratch) : cursor(scratch), width16(round_up(shape.width, 16)) {
    for (float** keys : {&k, &v}) *keys = cursor.take(kBlockKeys * shape.width);
    for (float** keys : {&k_columns, &dk, &dv}) *keys = cursor.take(kBlockKeys * width16);
    for (float** queries : {&q, &dy}) *queries = cursor.take(kBlockQueries * shape.width + 2);
    for (float** queries : {&q_columns, &dy_columns}) *queries = cursor.take(kBlockQueries * width16);
    for (float** block : {&scores, &gradients}) *block = cursor.take(kBlockQueries * kBlockKeys);
  }
  ScratchCursor cursor;
  std::int64_t width16;
  float *k, *v;                   ///< panels of 16 keys
  float* k_columns;               ///< panels of 16 elements of the width
  float *dk, *dv;                 ///< rows
  float *q, *dy;                  ///< panels of six queries
  float *q_columns, *dy_columns;  ///< panels of 16 elements of the width
  float *scores, *gradients;
};

float dot(const float* a, const float* b, std::int64_t count) {
  F8 sum{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sum += load(a + i) * load(b + i);
  if (i < count) sum += load_part(a + i, count - i) * load_part(b + i, count - i);
  return sum_lanes(sum);
}

/// Scores become probabilities (dropped ones 0, kept ones scaled), gradients of probabilities those of
/// scores.
void differentiate_row(const ScoreBlock& block, std::int64_t row, float logsum, float projection,
                       float* gradients) {
  const AttentionShape& shape = block.at.shape;
  float* scores = block.scores + row * kBlockKeys;
  const std::int64_t seen = block.seen(row);
  const std::int64_t keys16 = round_up(block.keys, 16);
  mask_row(block, row, seen, scores);
  for (std::int64_t i = seen; i < keys16; ++i) scores[i] = -__builtin_inff();
  float factors[kBlockKeys];
  if (shape.dropout > 0) draw_row(block, row, factors);
  for (std::int64_t i = 0; i < keys16; i += kLanes) {
    const F8 probability = exp8(load(scores + i) - logsum);
    F8 gradient = load(gradients + i);
    F8 used = probability;
    if (shape.dropout > 0) {
      const F8 factor = load(factors + i);
      gradient *= factor;
      used *= factor;
    }
    store(scores + i, used);
    store(gradients + i, probability * (gradient - projection) * shape.scale);
  }
}

/// A block of queries against the block of keys that is packed: adds to dk, dv and dq.
void differentiate_block(const AttentionBackward& back, const Buffers& buffers, const ScoreBlock& block,
                         bool first) {
  const Attention& at = back.forward;
  const AttentionShape& shape = at.shape;
  const std::int64_t q_at = block.query_at(shape.q);
  const std::int64_t y_at = block.query_at(shape.y);
  pack_rows6(at.q + q_at, shape.q.row, block.queries, shape.width, buffers.q);
  pack_rows6(back.dy + y_at, shape.y.row, block.queries, shape.width, buffers.dy);
  pack_columns16(at.q + q_at, shape.q.row, block.queries, shape.width, buffers.q_columns);
  pack_columns16(back.dy + y_at, shape.y.row, block.queries, shape.width, buffers.dy_columns);
  multiply_scores(block, buffers.q, buffers.k, buffers.scores, shape.scale);
  multiply_scores(block, buffers.dy, buffers.v, buffers.gradients, 1);
  const float* logsum = at.logsum + (block.sample * shape.heads + block.head) * shape.queries + block.query;
  for (std::int64_t row = 0; row < block.queries; ++row) {
    const std::int64_t y_row = y_at + row * shape.y.row;
    differentiate_row(block, row, logsum[row], dot(at.y + y_row, back.dy + y_row, shape.width),
                      buffers.gradients + row * kBlockKeys);
  }
  const std::int64_t keys6 = round_up(block.keys, kTileRows);
  multiply_into(keys6, buffers.width16, block.queries, buffers.scores, 1, kBlockKeys, buffers.dy_columns,
                block.queries, buffers.dv, buffers.width16, !first);
  multiply_into(keys6, buffers.width16, block.queries, buffers.gradients, 1, kBlockKeys, buffers.q_columns,
                block.queries, buffers.dk, buffers.width16, !first);
  multiply_into(block.queries, shape.width, block.keys, buffers.gradients, kBlockKeys, 1, buffers.k_columns,
                block.keys, back.dq + q_at, shape.q.row, block.key > 0);
}

void store_rows(const float* from, std::int64_t from_row, std::int64_t rows, std::int64_t width, bool nothing,
                float* to, std::int64_t to_row) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < width; ++i) to[row * to_row + i] = nothing ? 0.0F : from[row * from_row + i];
  }
}

/// All that one head of keys and values is read for, in an order that depends on nothing but the shape.
void differentiate_head(const AttentionBackward& back, const Buffers& buffers, std::int64_t sample,
                        std::int64_t kv_head) {
  const Attention& at = back.forward;
  const AttentionShape& shape = at.shape;
  const std::int64_t group = shape.heads / shape.kv_heads;
  for (std::int64_t key = 0; key < shape.keys; key += kBlockKeys) {
    const std::int64_t keys = smaller(kBlockKeys, shape.keys - key);
    const std::int64_t k_at = row_at(shape.k, sample, kv_head, key);
    const std::int64_t v_at = row_at(shape.v, sample, kv_head, key);
    pack_rows16(at.k + k_at, shape.k.row, keys, shape.width, buffers.k);
    pack_rows16(at.v + v_at, shape.v.row, keys, shape.width, buffers.v);
    pack_columns16(at.k + k_at, shape.k.row, keys, shape.width, buffers.k_columns);
    bool first = true;
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const std::int64_t begin = shape.causal ? key / kBlockQueries * kBlockQueries : 0;
      for (std::int64_t query = begin; query < shape.queries; query += kBlockQueries) {
        const std::int64_t queries = smaller(kBlockQueries, shape.queries - query);
        differentiate_block(back, buffers, {at, sample, head, query, queries, key, keys, buffers.scores},
                            first);
        first = false;
      }
    }
    store_rows(buffers.dk, buffers.width16, keys, shape.width, first, back.dk + k_at, shape.k.row);
    store_rows(buffers.dv, buffers.width16, keys, shape.width, first, back.dv + v_at, shape.v.row);
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
      differentiate_head(back, buffers, unit / at.shape.kv_heads, unit % at.shape.kv_heads);
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
