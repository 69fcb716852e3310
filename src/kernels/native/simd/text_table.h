#pragma once

#include "kernels/native/attention.h"
#include "kernels/native/product.h"
#include "kernels/native/rows.h"

namespace penstock::kernels::native {

/// Loops of transformers, compiled and chosen as those of SimdTable. No result depends on the number of
/// threads.
struct TextTable {
  void (*product)(const Product& product);
  std::int64_t (*product_floats)(std::int64_t m, std::int64_t n, std::int64_t k);
  void (*attention)(const Attention& attention);
  std::int64_t (*attention_floats)(const AttentionShape& shape);
  void (*attention_backward)(const AttentionBackward& attention);
  std::int64_t (*attention_backward_floats)(const AttentionShape& shape);
  void (*row_norm)(const RowNorm& norm);
  void (*row_norm_backward)(const RowNormBackward& norm);
  void (*column_sums)(const ColumnSums& sums);
  void (*gate)(GateFunction function, std::int64_t count, const float* a, const float* b, float* y);
  void (*gate_backward)(GateFunction function, std::int64_t count, const float* a, const float* b,
                        const float* dy, float* da, float* db);
  void (*gelu)(GateFunction function, std::int64_t count, const float* x, float* y);
  void (*gelu_backward)(GateFunction function, std::int64_t count, const float* x, const float* dy,
                        float* dx);
  /// Adds a part of the logits to what is known of each token.
  void (*add_logits)(const LogitPart& part, const LogitSums& sums);
  /// Logits become gradients of `scale` times the sum of the tokens' losses.
  void (*logit_gradients)(const LogitPart& part, const float* logsum, float scale);
};

const TextTable& text_simd();

}  // namespace penstock::kernels::native
