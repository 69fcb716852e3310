#pragma once

#include "kernels/native/wide_table.h"

/// The functions behind WideTable.
namespace penstock::kernels::native::PENSTOCK_SIMD {

void grouped_conv(const GroupedConv& conv);
void grouped_gradient(const GroupedGradient& conv);
void attention(const Attention& attention);
std::int64_t attention_floats(const AttentionShape& shape);
void attention_backward(const AttentionBackward& attention);
std::int64_t attention_backward_floats(const AttentionShape& shape);
void gelu(GateFunction function, std::int64_t count, const float* x, float* y);
void gelu_backward(GateFunction function, std::int64_t count, const float* x, const float* dy, float* dx);

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
