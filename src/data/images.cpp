#include "data/images.h"

#include <fmt/format.h>

#include <array>

#include "base/files.h"
#include "base/input_file.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/image_file.h"

namespace penstock {
namespace {

constexpr std::int64_t kMostPixels = 256 << 20;

}  // namespace

void refuse_image(const std::string& path, const std::string& why) {
  throw SampleError(fmt::format("image {} cannot be used: {}", printable(path), printable(why)));
}

void refuse_image(const ImageSource& source, const std::string& why) {
  if (source.error_number() != 0) {
    throw RunError(
        fmt::format("cannot read {}: {}", printable(source.path()), error_text(source.error_number())));
  }
  refuse_image(source.path(), why);
}

void check_image_size(const std::string& path, std::int64_t width, std::int64_t height) {
  if (width < 1 || height < 1 || width > kMostPixels / height) {
    refuse_image(path, fmt::format("{}x{} is more than {} million pixels", width, height, kMostPixels >> 20));
  }
}

void check_image_memory(const std::string& path, std::int64_t needed_bytes, std::int64_t limit_bytes) {
  if (needed_bytes <= limit_bytes) return;
  refuse_image(
      path, fmt::format("decoding it takes {}, more than the limit of {} (it is interlaced, progressive or "
                        "very wide)",
                        format_bytes(needed_bytes), format_bytes(limit_bytes)));
}

std::unique_ptr<ImageRows> open_image(const std::string& path, const DecodeOptions& options) {
  FileStatus status;
  if (files().status_at(path, true, status) == 0 && status.kind != FileKind::regular) {
    refuse_image(path, "it is not a regular file");
  }
  ImageSource source{InputFile(path)};
  std::array<unsigned char, 4> magic{};
  const std::int64_t got = source.read(magic.data(), magic.size());
  source.rewind();
  if (got >= 2 && magic[0] == 0xff && magic[1] == 0xd8) return open_jpeg(std::move(source), options);
  if (got == 4 && magic[0] == 0x89 && magic[1] == 'P' && magic[2] == 'N' && magic[3] == 'G') {
    return open_png(std::move(source), options);
  }
  refuse_image(source, got == 0 ? "it is empty" : "it is neither JPEG nor PNG");
}

}  // namespace penstock
