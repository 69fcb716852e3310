#pragma once

#include "kernels/native/wide/vector16.h"

/// Rows of an image with zeros where the kernel reaches beyond it. They stand in a ring, in which each row of
/// the image has its place, so that a row is copied once for all rows of outputs that see it.
namespace penstock::kernels::native::PENSTOCK_SIMD {

inline constexpr std::int64_t kMostKernelRows = 8;

class PaddedRows {
 public:
  /// For one block of one image.
  PaddedRows(const GroupedShape& shape, const float* image, float* ring)
      : shape_(shape), image_(image), ring_(ring), columns_(shape.seen_columns()) {
    for (std::int64_t i = 0; i < shape.rows_floats(); i += kWide) store16(ring + i, F16{});
    for (std::int64_t& row : held_) row = -1;
    first_ = shape.left >= 0 ? 0 : (-shape.left + shape.spread_width - 1) / shape.spread_width;
    const std::int64_t room = columns_ - shape.left;
    last_ = room <= 0 ? 0 : smaller(shape.in_width, (room + shape.spread_width - 1) / shape.spread_width);
  }

  /// The row that the kernel's row `tap` sees from outputs of row `out`; null if that is outside or between
  /// rows.
  const float* get(std::int64_t out, std::int64_t tap) {
    const std::int64_t place = out * shape_.stride_height - shape_.top + tap;
    if (place < 0 || place % shape_.spread_height != 0) return nullptr;
    const std::int64_t row = place / shape_.spread_height;
    if (row >= shape_.in_height) return nullptr;
    const std::int64_t slot = row % shape_.kernel_height;
    float* to = ring_ + slot * columns_ * kWide;
    if (held_[slot] != row) {
      held_[slot] = row;
      const float* from = image_ + row * shape_.in_width * kWide;
      // Each row is short, so the processor does not see the next ones coming by itself.
      for (std::int64_t i = first_; i < last_; ++i) {
        store16(to + (i * shape_.spread_width + shape_.left) * kWide, load16(from + i * kWide));
        __builtin_prefetch(from + (i + 2 * shape_.in_width) * kWide);
      }
    }
    return to;
  }

 private:
  const GroupedShape& shape_;
  const float* image_;
  float* ring_;
  std::int64_t columns_;
  std::int64_t first_ = 0, last_ = 0;  ///< columns of the image that some tap sees
  std::int64_t held_[kMostKernelRows];
};

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
