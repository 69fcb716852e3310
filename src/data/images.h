#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"

namespace penstock {

struct DecodeOptions {
  /// Decoding that would take more memory is refused; most images are decoded row by row and need very
  /// little.
  std::int64_t limit_bytes = 64 * kMiB;
  /// A JPEG may be decoded at a half, quarter or eighth of its size as long as its shorter side keeps this
  /// many pixels; 0 decodes at full size.
  std::int64_t shorter_side = 0;
};

/// An image being decoded from its top row to its last. One thread at a time.
class ImageRows {
 public:
  virtual ~ImageRows() = default;
  std::int64_t width() const { return width_; }
  std::int64_t height() const { return height_; }
  /// 1 (grey) or 3 (red, green, blue). Alpha is dropped, palettes are resolved, 16 bits are scaled to 8.
  std::int64_t channels() const { return channels_; }

  /// Writes the next row, width * channels bytes, the channels of a pixel side by side.
  /// Throws SampleError if the file is damaged, RunError if the disk fails.
  virtual void read_row(std::uint8_t* row) = 0;

 protected:
  std::int64_t width_ = 0;
  std::int64_t height_ = 0;
  std::int64_t channels_ = 0;
};

/// Opens a JPEG or PNG file, told apart by its first bytes. Throws SampleError, naming the file, if it cannot
/// be decoded, is no regular file, or is too large; UserError if it is gone or not permitted and RunError if
/// the disk fails, because then other images may be no better.
std::unique_ptr<ImageRows> open_image(const std::string& path, const DecodeOptions& options);

}  // namespace penstock
