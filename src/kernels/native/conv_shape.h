#pragma once

#include <array>
#include <cstdint>

namespace penstock::kernels::native {

/// A convolution without groups over tensors in blocks of channels, weights [O/b, C/b, k..., b in, b out].
/// One to three spatial axes; absent ones come first and have extent one.
struct ConvShape {
  using Axes = std::array<std::int64_t, 3>;

  std::int64_t images = 0;
  std::int64_t lanes = 8;  ///< channels of a block: b
  std::int64_t in_blocks = 0;
  std::int64_t out_blocks = 0;
  Axes in{1, 1, 1};
  Axes out{1, 1, 1};
  Axes kernel{1, 1, 1};
  Axes stride{1, 1, 1};
  Axes dilation{1, 1, 1};
  Axes padding{0, 0, 0};  ///< before the first element

  static std::int64_t product(const Axes& axes) { return axes[0] * axes[1] * axes[2]; }
  std::int64_t taps() const { return product(kernel); }
  std::int64_t in_positions() const { return product(in); }
  std::int64_t out_positions() const { return product(out); }
};

}  // namespace penstock::kernels::native
