#pragma once

#include "kernels/native/simd/loops.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {

void winograd_conv(const WinogradConv& conv);
std::int64_t winograd_weight_floats(const ConvShape& shape);
std::int64_t winograd_thread_floats(const ConvShape& shape, std::int64_t block_tiles);
void winograd_gradient(const WinogradGradient& conv);
std::int64_t winograd_gradient_floats(const ConvShape& shape, std::int64_t block_tiles);

#if defined(__AVX512F__)
inline constexpr std::int64_t kWinogradLanes = 16, kWinogradGroup = 14;
#else
inline constexpr std::int64_t kWinogradLanes = 8, kWinogradGroup = 6;
#endif

inline constexpr WinogradTable kWinograd{kWinogradLanes,          kWinogradGroup,         winograd_conv,
                                         winograd_weight_floats,  winograd_thread_floats, winograd_gradient,
                                         winograd_gradient_floats};

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
