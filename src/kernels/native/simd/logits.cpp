#include "kernels/native/rows.h"
#include "kernels/native/simd/text_loops.h"
#include "kernels/native/simd/threads.h"
#include "kernels/native/simd/vector_math.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {

void add_logits(const LogitPart& part, const LogitSums& sums) {
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < part.rows; ++row) {
    const float* logits = part.logits + row * part.columns;
    const std::int64_t eights = part.columns / kLanes * kLanes;
    F8 largest8 = broadcast(sums.largest[row]);
    F8 total8{};
    for (std::int64_t i = 0; i < eights; i += kLanes) {
      const F8 value = load(logits + i);
      largest8 = larger8(largest8, value);
      total8 += value;
    }
    float largest = largest_lane(largest8);
    float total = sum_lanes(total8);
    for (std::int64_t i = eights; i < part.columns; ++i) {
      largest = logits[i] > largest ? logits[i] : largest;
      total += logits[i];
    }
    F8 sum8{};
    for (std::int64_t i = 0; i < eights; i += kLanes) sum8 += exp8(load(logits + i) - largest);
    float sum = sum_lanes(sum8);
    for (std::int64_t i = eights; i < part.columns; ++i) sum += __builtin_expf(logits[i] - largest);
    const float factor =
        sums.largest[row] == -__builtin_inff() ? 0.0F : __builtin_expf(sums.largest[row] - largest);
    sums.sum[row] = sums.sum[row] * factor + sum;
    sums.largest[row] = largest;
    sums.total[row] += total;
    const std::int64_t own = part.labels[row] - part.begin;
    if (own >= 0 && own < part.columns) sums.own[row] = logits[own];
  }
}

void logit_gradients(const LogitPart& part, const float* logsum, float scale) {
  const float rest = part.smoothing / static_cast<float>(part.vocabulary);
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < part.rows; ++row) {
    float* logits = part.logits + row * part.columns;
    const float factor = part.labels[row] < 0 ? 0.0F : scale;
    const std::int64_t eights = part.columns / kLanes * kLanes;
    for (std::int64_t i = 0; i < eights; i += kLanes)
      store(logits + i, (exp8(load(logits + i) - logsum[row]) - rest) * factor);
    for (std::int64_t i = eights; i < part.columns; ++i)
      logits[i] = (exp8(broadcast(logits[i] - logsum[row]))[0] - rest) * factor;
    const std::int64_t own = part.labels[row] - part.begin;
    if (own >= 0 && own < part.columns) logits[own] -= (1 - part.smoothing) * factor;
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
