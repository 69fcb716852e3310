#pragma once

#include <cstdint>

namespace penstock::kernels::native {

/// y = (x + z - mean) / deviation * gamma + beta along rows; of RMS norm without mean and beta.
struct RowNorm {
  std::int64_t rows = 0, width = 0;
  const float* x = nullptr;
  const float* z = nullptr;  ///< null: nothing is added
  const float* gamma = nullptr;
  const float* beta = nullptr;  ///< null: none
  float* y = nullptr;
  float* sum = nullptr;       ///< x + z; null where z is
  float* mean = nullptr;      ///< [rows]; null: RMS norm
  float* variance = nullptr;  ///< [rows]; of RMS norm the mean square
  float epsilon = 0;
};

struct RowNormBackward {
  std::int64_t rows = 0, width = 0;
  const float* x = nullptr;  ///< what was normalised
  const float* dy = nullptr;
  const float* dsum = nullptr;  ///< added to dx; null: nothing
  const float* gamma = nullptr;
  const float* mean = nullptr;  ///< null: RMS norm
  const float* variance = nullptr;
  float* dx = nullptr;
  float* dgamma = nullptr;
  float* dbeta = nullptr;    ///< null: none
  float* partial = nullptr;  ///< scratch, row_norm_partial_floats()
  float epsilon = 0;
};

/// Rows whose contributions to dgamma and dbeta are summed at a stretch: the order depends on the shape
/// alone.
inline std::int64_t norm_stretch(std::int64_t rows) {
  constexpr std::int64_t kStretches = 64;
  const std::int64_t even = (rows + kStretches - 1) / kStretches;
  return even < 16 ? 16 : even;
}
inline std::int64_t row_norm_partial_floats(std::int64_t rows, std::int64_t width) {
  const std::int64_t stretch = norm_stretch(rows);
  return (rows + stretch - 1) / stretch * 2 * width;
}

/// y[i] = the sum of column i of x.
struct ColumnSums {
  std::int64_t rows = 0, width = 0;
  const float* x = nullptr;
  float* y = nullptr;
  float* partial = nullptr;  ///< scratch, column_sums_floats()
};
inline std::int64_t column_sums_floats(std::int64_t rows, std::int64_t width) {
  return row_norm_partial_floats(rows, width) / 2;
}

/// A gated unit: y = silu(a) * b, or gelu(a) * b.
enum class GateFunction : std::uint8_t { silu, gelu, gelu_tanh };

/// A part of the logits of an output layer: `rows` tokens by `columns` of the vocabulary from `begin` on.
struct LogitPart {
  std::int64_t rows = 0, columns = 0, begin = 0, vocabulary = 0;
  float* logits = nullptr;
  const std::int32_t* labels = nullptr;  ///< negative: adds nothing
  float smoothing = 0;
};

/// What is known of each token's logits after the parts seen so far.
struct LogitSums {
  float* largest = nullptr;  ///< -infinity at first
  float* sum = nullptr;      ///< of exponentials under `largest`
  float* own = nullptr;      ///< the label's logit
  float* total = nullptr;    ///< of logits
};

}  // namespace penstock::kernels::native
