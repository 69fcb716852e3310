#pragma once

#include "kernels/native/simd/table.h"

#ifndef PENSTOCK_SIMD
#define PENSTOCK_SIMD baseline
#endif

/// The functions behind the table, once per build of these sources.
namespace penstock::kernels::native::PENSTOCK_SIMD {

void norm_statistics(const ChannelView& view, const float* x, double* partial, float* mean, float* variance);
void norm_forward(const NormForward& norm);
void norm_backward(const NormBackward& norm);
void norm_backward_sums(const NormBackward& norm);
void norm_backward_data(const NormBackward& norm);
void add_bias(const ChannelView& view, const float* x, const float* bias, float* y);
void channel_sums(const ChannelView& view, const float* x, double* partial, float* sums);
void global_average(const ChannelView& view, const float* x, float* y);
void global_average_backward(const ChannelView& view, const float* dy, float* dx);
void add(std::int64_t count, const float* a, const float* b, float* y);
void multiply(std::int64_t count, const float* a, const float* b, float* y);
void leaky_relu(std::int64_t count, float slope, const float* x, float* y);
void leaky_relu_backward(std::int64_t count, float slope, const float* y, const float* dy, float* dx);
void sgd(const SgdStep& step);
void adam(const AdamStep& step);
void conv_gradient(const ConvGradient& conv);

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
