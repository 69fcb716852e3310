#pragma once

#include <cstdint>

namespace penstock::kernels::native {

/// A convolution over images in blocks of sixteen channels, in groups of `group` channels (2, 4 or 8) that
/// make as many. Weights are plain: [channels, group, kernel_height, kernel_width].
struct GroupedShape {
  std::int64_t images = 0;
  std::int64_t blocks = 0;
  std::int64_t group = 0;
  std::int64_t in_height = 0, in_width = 0;
  std::int64_t out_height = 0, out_width = 0;
  std::int64_t kernel_height = 0, kernel_width = 0;
  std::int64_t stride_height = 1, stride_width = 1;
  std::int64_t top = 0, left = 0;  ///< padding
  /// The input's rows and columns lie so far apart, with zeros between: the input gradient of a convolution
  /// with that stride.
  std::int64_t spread_height = 1, spread_width = 1;

  static constexpr std::int64_t kBlock = 16;
  std::int64_t taps() const { return kernel_height * kernel_width; }
  std::int64_t weight_floats() const { return blocks * kBlock * group * taps(); }
  /// Columns that the taps of a row of outputs see, padding included.
  std::int64_t seen_columns() const { return (out_width - 1) * stride_width + kernel_width; }
  /// The rows of a thread: those under the kernel.
  std::int64_t rows_floats() const { return kernel_height * seen_columns() * kBlock; }
};

struct GroupedConv {
  GroupedShape shape;
  bool turned = false;  ///< the weights are those of the convolution whose input gradient this is
  bool relu = false;
  const float* x = nullptr;
  const float* weights = nullptr;
  const float* bias = nullptr;  ///< null: none
  float* y = nullptr;
  float* packed = nullptr;  ///< scratch, weight_floats()
  float* rows = nullptr;    ///< scratch, `threads` times rows_floats()
  int threads = 1;          ///< at most so many
};

struct GroupedGradient {
  GroupedShape shape;
  const float* x = nullptr;
  const float* dy = nullptr;
  float* dw = nullptr;
  std::int64_t parts = 1;  ///< of the images, that are summed by themselves
  float* sums = nullptr;   ///< scratch, `parts` times weight_floats()
  float* rows = nullptr;   ///< scratch, `threads` times gradient_rows_floats()
  int threads = 1;         ///< at most so many

  /// A row of dy beside those of x, with room for the kernel on either side.
  static std::int64_t gradient_rows_floats(const GroupedShape& shape) {
    return shape.rows_floats() + (shape.out_width + 2 * shape.kernel_width) * GroupedShape::kBlock;
  }
};

}  // namespace penstock::kernels::native
