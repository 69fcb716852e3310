#pragma once

#if defined(__AVX512F__)
#include "kernels/native/wide/vector16.h"
#else
#include "kernels/native/simd/vector8.h"
#endif

/// A block of channels in one vector: sixteen where the source is compiled for AVX-512, eight otherwise.
namespace penstock::kernels::native::PENSTOCK_SIMD {

#if defined(__AVX512F__)
using Lanes = F16;
inline constexpr std::int64_t kLanes = kWide;

[[gnu::always_inline]] static inline Lanes load(const float* p) {
  return load16(p);
}
[[gnu::always_inline]] static inline void store(float* p, Lanes v) {
  store16(p, v);
}
[[gnu::always_inline]] static inline Lanes broadcast(float value) {
  return broadcast16(value);
}
[[gnu::always_inline]] static inline Lanes relu(Lanes v) {
  return v < 0 ? Lanes{} : v;
}
#else
using Lanes = F8;
#endif

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
