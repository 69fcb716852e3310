#pragma once

#include "kernels/native/simd/loops.h"
#include "kernels/native/simd/text_table.h"

/// The functions behind TextTable, once per build of these sources.
namespace penstock::kernels::native::PENSTOCK_SIMD {

void product(const Product& product);
std::int64_t product_floats(std::int64_t m, std::int64_t n, std::int64_t k);
void attention(const Attention& attention);
std::int64_t attention_floats(const AttentionShape& shape);
void attention_backward(const AttentionBackward& attention);
std::int64_t attention_backward_floats(const AttentionShape& shape);
void row_norm(const RowNorm& norm);
void row_norm_backward(const RowNormBackward& norm);
void column_sums(const ColumnSums& sums);
void gate(GateFunction function, std::int64_t count, const float* a, const float* b, float* y);
void gate_backward(GateFunction function, std::int64_t count, const float* a, const float* b, const float* dy,
                   float* da, float* db);
void gelu(GateFunction function, std::int64_t count, const float* x, float* y);
void gelu_backward(GateFunction function, std::int64_t count, const float* x, const float* dy, float* dx);
void add_logits(const LogitPart& part, const LogitSums& sums);
void logit_gradients(const LogitPart& part, const float* logsum, float scale);

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
