#pragma once

#include "kernels/native/simd/rows.h"

/// What batch norm forward and backward share.
namespace penstock::kernels::native::PENSTOCK_SIMD {

/// Adds up the rows' partial sums of channel `c`, image after image, so that the order is the same for any
/// number of threads.
static inline void sum_images(const ChannelView& view, const double* partial, std::int64_t c, double& a,
                              double& b) {
  a = 0;
  b = 0;
  for (std::int64_t image = 0; image < view.images; ++image) {
    const double* row = partial + (image * view.blocks + c / view.block) * 2 * view.block;
    a += row[c % view.block];
    b += row[view.block + c % view.block];
  }
}

/// Whether the channels of a position fill cache lines. Two runs side by side then take each line once, which
/// keeps memory busier than one behind the other.
static inline bool fills_lines(const ChannelView& view) {
  return view.block % (2 * kLanes) == 0;
}

/// The norm of eight channels: x * scale + shift.
struct Affine {
  F8 scale;
  F8 shift;
};

template <typename Norm>
[[gnu::always_inline]] static inline Affine affine_of(const Norm& norm, const Run& run) {
  const ChannelView& view = norm.view;
  const F8 root = square_root(lanes_of(view, run, norm.variance) + broadcast(norm.epsilon));
  const F8 scale = lanes_of(view, run, norm.gamma) / root;
  return {scale, lanes_of(view, run, norm.beta) - lanes_of(view, run, norm.mean) * scale};
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
