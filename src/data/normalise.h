#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

/// Mean and standard deviation of a data set's pixels in 0 .. 1, one per channel of the data set itself.
struct PixelStatistics {
  std::vector<float> mean;
  std::vector<float> deviation;
};

PixelStatistics fashion_mnist_statistics();
PixelStatistics mnist_statistics();
PixelStatistics cifar10_statistics();
PixelStatistics imagenet_statistics();

/// Where the bytes of one row are: pixel x of channel c is at x * pixel_stride + c * channel_stride.
struct ByteRow {
  const std::uint8_t* bytes;
  std::int64_t channels;
  std::int64_t pixel_stride;
  std::int64_t channel_stride;
  std::int64_t width;
};

/// Turns bytes into floats, (byte / 255 - mean) / deviation, by a table per channel, and grey into colour
/// (the same byte in each channel) or colour into grey (the luma of ITU-R BT.601). Immutable; any thread may
/// call.
class ByteNormaliser {
 public:
  /// Throws UserError naming `what` if data of these statistics cannot be had in so many channels.
  ByteNormaliser(const PixelStatistics& statistics, std::int64_t channels, const std::string& what);

  std::int64_t channels() const { return static_cast<std::int64_t>(tables_.size()); }

  /// Writes [channels, row.width]; the channels of `out` are channel_step floats apart.
  void convert(const ByteRow& row, float* out, std::int64_t channel_step) const;

 private:
  std::vector<std::array<float, 256>> tables_;
};

}  // namespace penstock
