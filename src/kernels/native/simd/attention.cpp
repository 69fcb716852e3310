#include "kernels/native/simd/attention_block.h"
#include "kernels/native/simd/text_loops.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// One thread's scratch.
struct Buffers {
  Buffers(const AttentionShape& shape, float* scratch) : cursor(scratch), width16(round_up(shape.width, 16)) {
    k = cursor.take(round_up(shape.keys, 16) * shape.width);
    v = cursor.take(shape.keys * width16);
    q = cursor.take(kBlockQueries * shape.width + 2);
    scores = cursor.take(kBlockQueries * kBlockKeys);
    y = cursor.take(kBlockQueries * width16);
  }
  ScratchCursor cursor;
  std::int64_t width16;
  float* k;  ///< panels of 16 keys
  float* v;  ///< panels of 16 elements of the width
  float* q;  ///< a block's queries in panels of six
  float* scores;
  float* y;  ///< a block's outputs before the division
};

/// Running maximum and sum of exponentials of a block's queries.
struct RunningSums {
  float largest[kBlockQueries];
  float sum[kBlockQueries];
};

/// Turns a row's scores into exponentials under the new maximum; what was summed before is scaled by the
/// result.
float exponentials(const ScoreBlock& block, std::int64_t row, RunningSums& running) {
  float* scores = block.scores + row * kBlockKeys;
  const std::int64_t seen = block.seen(row);
  mask_row(block, row, seen, scores);
  F8 largest8 = broadcast(running.largest[row]);
  std::int64_t i = 0;
  for (; i + kLanes <= seen; i += kLanes) largest8 = larger8(largest8, load(scores + i));
  float largest = largest_lane(largest8);
  for (; i < seen; ++i) largest = scores[i] > largest ? scores[i] : largest;
  // A row that sees nothing yet stays as it is: its sum is 0.
  const float shift = largest == -__builtin_inff() ? 0.0F : largest;
  for (std::int64_t hidden = seen; hidden < round_up(block.keys, 16); ++hidden)
    scores[hidden] = -__builtin_inff();
  F8 sum{};
  for (i = 0; i < round_up(block.keys, 16); i += kLanes) {
    const F8 value = exp8(load(scores + i) - shift);
    store(scores + i, value);
    sum += value;
  }
  const float factor =
      running.largest[row] == -__builtin_inff() ? 0.0F : __builtin_expf(running.largest[row] - shift);
  running.sum[row] = running.sum[row] * factor + sum_lanes(sum);
  running.largest[row] = largest;
  if (block.at.shape.dropout > 0) {
    float factors[kBlockKeys];
    draw_row(block, row, factors);
    for (i = 0; i < block.keys; ++i) scores[i] *= factors[i];
  }
  return factor;
}

void attend_queries(const Attention& at, const Buffers& buffers, ScoreBlock block) {
  const AttentionShape& shape = at.shape;
  RunningSums running;
  for (std::int64_t row = 0; row < kBlockQueries; ++row) {
    running.largest[row] = -__builtin_inff();
    running.sum[row] = 0;
  }
  const float* q = at.q + block.query_at(shape.q);
  pack_rows6(q, shape.q.row, block.queries, shape.width, buffers.q);
  const std::int64_t rows6 = round_up(block.queries, kTileRows);
  const std::int64_t last = shape.causal ? smaller(shape.keys, block.query + block.queries) : shape.keys;
  for (block.key = 0; block.key < last; block.key += kBlockKeys) {
    block.keys = smaller(kBlockKeys, last - block.key);
    multiply_scores(block, buffers.q, buffers.k + block.key * shape.width, block.scores, shape.scale);
    for (std::int64_t row = 0; row < block.queries; ++row) {
      const float factor = exponentials(block, row, running);
      if (block.key == 0) continue;
      float* y = buffers.y + row * buffers.width16;
      for (std::int64_t i = 0; i < buffers.width16; i += kLanes) store(y + i, load(y + i) * factor);
    }
    multiply_into(rows6, buffers.width16, block.keys, block.scores, kBlockKeys, 1,
                  buffers.v + block.key * kTileColumns, shape.keys, buffers.y, buffers.width16,
                  block.key > 0);
  }
  float* y = at.y + block.query_at(shape.y);
  float* logsum = at.logsum + (block.sample * shape.heads + block.head) * shape.queries + block.query;
  for (std::int64_t row = 0; row < block.queries; ++row) {
    const float sum = running.sum[row];
    const float factor = sum > 0 ? 1 / sum : 0.0F;
    const float* from = buffers.y + row * buffers.width16;
    for (std::int64_t i = 0; i < shape.width; ++i) y[row * shape.y.row + i] = from[i] * factor;
    // A query that sees no key: its exponentials are 0 for any log-sum but infinity.
    logsum[row] = sum > 0 ? running.largest[row] + __builtin_logf(sum) : 0.0F;
  }
}

}  // namespace

std::int64_t attention_floats(const AttentionShape& shape) {
  return Buffers(shape, nullptr).cursor.used();
}

void attention(const Attention& at) {
  const AttentionShape& shape = at.shape;
  const std::int64_t group = shape.heads / shape.kv_heads;
#pragma omp parallel num_threads(at.threads)
  {
    const Buffers buffers(shape, at.scratch + omp_get_thread_num() * attention_floats(shape));
#pragma omp for schedule(dynamic)
    for (std::int64_t unit = 0; unit < shape.batch * shape.heads; ++unit) {
      const std::int64_t sample = unit / shape.heads;
      const std::int64_t head = unit % shape.heads;
      pack_rows16(at.k + row_at(shape.k, sample, head / group, 0), shape.k.row, shape.keys, shape.width,
                  buffers.k);
      pack_columns16(at.v + row_at(shape.v, sample, head / group, 0), shape.v.row, shape.keys, shape.width,
                     buffers.v);
      for (std::int64_t query = 0; query < shape.queries; query += kBlockQueries) {
        attend_queries(
            at, buffers,
            {at, sample, head, query, smaller(kBlockQueries, shape.queries - query), 0, 0, buffers.scores});
      }
    }
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
