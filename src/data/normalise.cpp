#include "data/normalise.h"

#include <fmt/format.h>

#include <numeric>

#include "base/error.h"

namespace penstock {
namespace {

float average(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0F) / static_cast<float>(values.size());
}

}  // namespace

PixelStatistics fashion_mnist_statistics() {
  return {{0.2860F}, {0.3530F}};
}

PixelStatistics mnist_statistics() {
  return {{0.1307F}, {0.3081F}};
}

PixelStatistics cifar10_statistics() {
  return {{0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F}};
}

PixelStatistics imagenet_statistics() {
  return {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
}

ByteNormaliser::ByteNormaliser(const PixelStatistics& statistics, std::int64_t channels,
                               const std::string& what) {
  const auto own = static_cast<std::int64_t>(statistics.mean.size());
  if (channels < 1 || (channels != own && own != 1 && channels != 1)) {
    throw UserError(fmt::format("{} has {} channels and cannot be read as {}: ask for {} or 1", what, own,
                                channels, own));
  }
  tables_.resize(static_cast<std::size_t>(channels));
  for (std::size_t c = 0; c < tables_.size(); ++c) {
    const bool by_channel = channels == own;
    const float mean = by_channel ? statistics.mean[c] : average(statistics.mean);
    const float deviation = by_channel ? statistics.deviation[c] : average(statistics.deviation);
    for (int byte = 0; byte < 256; ++byte) {
      tables_[c][static_cast<std::size_t>(byte)] = (static_cast<float>(byte) / 255.0F - mean) / deviation;
    }
  }
}

void ByteNormaliser::convert(const ByteRow& row, float* out, std::int64_t channel_step) const {
  if (row.channels == 3 && tables_.size() == 1) {
    const std::uint8_t* red = row.bytes;
    const std::uint8_t* green = red + row.channel_stride;
    const std::uint8_t* blue = green + row.channel_stride;
    for (std::int64_t x = 0; x < row.width; ++x) {
      const std::int64_t at = x * row.pixel_stride;
      // 16-bit fixed point; the weights sum to 65536.
      const unsigned luma = (19595U * red[at] + 38470U * green[at] + 7471U * blue[at] + 32768U) >> 16;
      out[x] = tables_[0][luma];
    }
    return;
  }
  for (std::size_t c = 0; c < tables_.size(); ++c) {
    const auto& table = tables_[c];
    const std::uint8_t* from =
        row.bytes + (row.channels == 1 ? 0 : static_cast<std::int64_t>(c) * row.channel_stride);
    float* to = out + static_cast<std::int64_t>(c) * channel_step;
    for (std::int64_t x = 0; x < row.width; ++x) to[x] = table[from[x * row.pixel_stride]];
  }
}

}  // namespace penstock
