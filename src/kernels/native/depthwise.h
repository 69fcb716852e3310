#pragma once

#include <cstdint>

namespace penstock::kernels::native {

/// The weights' gradient of a convolution with one channel for each group, over images in blocks of `pixel`
/// channels, a multiple of eight (all of them: channels last); weights [C/8, k, k, 8].
struct DepthwiseGradient {
  std::int64_t images = 0;
  std::int64_t blocks = 0;        ///< of eight channels
  std::int64_t pixel = 8;         ///< floats from a pixel to the next
  std::int64_t pixel_blocks = 0;  ///< blocks of `pixel` channels in memory
  std::int64_t in_height = 0, in_width = 0, out_height = 0, out_width = 0;
  std::int64_t kernel_height = 0, kernel_width = 0;
  std::int64_t stride_height = 1, stride_width = 1;
  std::int64_t dilation_height = 1, dilation_width = 1;
  std::int64_t top = 0, left = 0;  ///< padding

  const float* x = nullptr;
  const float* dy = nullptr;
  float* dw = nullptr;
  float* db = nullptr;    ///< null: no bias
  float* sums = nullptr;  ///< scratch: depthwise_floats() for each thread
  int threads = 1;        ///< at most so many
};

/// Scratch of one thread: sums of an image and of all images.
inline std::int64_t depthwise_floats(const DepthwiseGradient& conv) {
  return 2 * 8 * (conv.kernel_height * conv.kernel_width + 1);
}

}  // namespace penstock::kernels::native
