#pragma once

#include <cstdint>

namespace penstock::kernels::native {

/// A tensor [N, C, ...] as it lies in memory: images of channel blocks of positions of `block` channels.
/// Plain order is block = 1; channels-last is one block of all channels. Channels beyond `channels` in the
/// last block are padding and hold zeros. Every block is 1 or a multiple of 8.
struct ChannelView {
  std::int64_t images = 0;
  std::int64_t blocks = 0;
  std::int64_t positions = 0;
  std::int64_t block = 1;
  std::int64_t channels = 0;

  /// A row is one block of channels of one image: the unit of work.
  std::int64_t rows() const { return images * blocks; }
  std::int64_t row_elements() const { return positions * block; }
  std::int64_t elements() const { return rows() * row_elements(); }
  /// One bit an element; each row begins at a byte.
  std::int64_t mask_row_bytes() const { return (row_elements() + 7) / 8; }
  std::int64_t mask_bytes() const { return rows() * mask_row_bytes(); }
  bool operator==(const ChannelView&) const = default;
};

}  // namespace penstock::kernels::native
