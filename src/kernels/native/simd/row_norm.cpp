#include "kernels/native/rows.h"
#include "kernels/native/simd/text_loops.h"
#include "kernels/native/simd/threads.h"
#include "kernels/native/simd/vector_math.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {
namespace {

/// Calls work(i, count) for eights of a row; the last one may have fewer.
template <typename Work>
[[gnu::always_inline]] inline void for_eights(std::int64_t width, const Work& work) {
  std::int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) work(i, kLanes);
  if (i < width) work(i, width - i);
}
/// v in the first `count` lanes, 0 in the others.
[[gnu::always_inline]] inline F8 first_lanes(F8 v, std::int64_t count) {
  for (std::int64_t i = count; i < kLanes; ++i) v[i] = 0;
  return v;
}

void normalise(const RowNorm& norm, std::int64_t row) {
  const auto width = static_cast<float>(norm.width);
  const float* x = norm.x + row * norm.width;
  if (norm.z != nullptr) {
    const float* z = norm.z + row * norm.width;
    float* sum = norm.sum + row * norm.width;
    for_eights(norm.width,
               [&](std::int64_t i, std::int64_t n) { put(sum + i, take(x + i, n) + take(z + i, n), n); });
    x = sum;
  }
  float mean = 0;
  if (norm.mean != nullptr) {
    F8 sum{};
    for_eights(norm.width, [&](std::int64_t i, std::int64_t n) { sum += take(x + i, n); });
    mean = sum_lanes(sum) / width;
    norm.mean[row] = mean;
  }
  F8 squares{};
  for_eights(norm.width, [&](std::int64_t i, std::int64_t n) {
    const F8 apart = first_lanes(take(x + i, n) - mean, n);
    squares += apart * apart;
  });
  const float variance = sum_lanes(squares) / width;
  norm.variance[row] = variance;
  const float scale = 1 / __builtin_sqrtf(variance + norm.epsilon);
  float* y = norm.y + row * norm.width;
  for_eights(norm.width, [&](std::int64_t i, std::int64_t n) {
    F8 value = (take(x + i, n) - mean) * scale * take(norm.gamma + i, n);
    if (norm.beta != nullptr) value += take(norm.beta + i, n);
    put(y + i, value, n);
  });
}

/// dx of a row; adds the row's part of dgamma and dbeta.
void differentiate(const RowNormBackward& norm, std::int64_t row, float* dgamma, float* dbeta) {
  const auto width = static_cast<float>(norm.width);
  const float* x = norm.x + row * norm.width;
  const float* dy = norm.dy + row * norm.width;
  const float mean = norm.mean != nullptr ? norm.mean[row] : 0.0F;
  const float scale = 1 / __builtin_sqrtf(norm.variance[row] + norm.epsilon);
  F8 sum{};
  F8 projection{};
  for_eights(norm.width, [&](std::int64_t i, std::int64_t n) {
    const F8 normed = (take(x + i, n) - mean) * scale;
    const F8 given = take(dy + i, n);
    const F8 gradient = given * take(norm.gamma + i, n);
    sum += gradient;
    projection += gradient * normed;
    put(dgamma + i, take(dgamma + i, n) + given * normed, n);
    if (norm.dbeta != nullptr) put(dbeta + i, take(dbeta + i, n) + given, n);
  });
  const float shift = norm.mean != nullptr ? sum_lanes(sum) / width : 0.0F;
  const float slope = sum_lanes(projection) / width;
  float* dx = norm.dx + row * norm.width;
  const float* dsum = norm.dsum != nullptr ? norm.dsum + row * norm.width : nullptr;
  for_eights(norm.width, [&](std::int64_t i, std::int64_t n) {
    const F8 normed = (take(x + i, n) - mean) * scale;
    F8 value = (take(dy + i, n) * take(norm.gamma + i, n) - shift - normed * slope) * scale;
    if (dsum != nullptr) value += take(dsum + i, n);
    put(dx + i, value, n);
  });
}

}  // namespace

void row_norm(const RowNorm& norm) {
#pragma omp parallel for schedule(static) if (norm.rows * norm.width > kSerial)
  for (std::int64_t row = 0; row < norm.rows; ++row) normalise(norm, row);
}

void row_norm_backward(const RowNormBackward& norm) {
  const std::int64_t stretch = norm_stretch(norm.rows);
  const std::int64_t stretches = (norm.rows + stretch - 1) / stretch;
#pragma omp parallel if (norm.rows * norm.width > kSerial)
  {
#pragma omp for schedule(static)
    for (std::int64_t part = 0; part < stretches; ++part) {
      float* dgamma = norm.partial + part * 2 * norm.width;
      for (std::int64_t i = 0; i < 2 * norm.width; ++i) dgamma[i] = 0;
      const std::int64_t end = smaller((part + 1) * stretch, norm.rows);
      for (std::int64_t row = part * stretch; row < end; ++row)
        differentiate(norm, row, dgamma, dgamma + norm.width);
    }
    const Share share = my_share(norm.width, 16);
    for (std::int64_t i = share.begin; i < share.end; ++i) {
      double dgamma = 0;
      double dbeta = 0;
      for (std::int64_t part = 0; part < stretches; ++part) {
        dgamma += norm.partial[part * 2 * norm.width + i];
        dbeta += norm.partial[(part * 2 + 1) * norm.width + i];
      }
      norm.dgamma[i] = static_cast<float>(dgamma);
      if (norm.dbeta != nullptr) norm.dbeta[i] = static_cast<float>(dbeta);
    }
  }
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
