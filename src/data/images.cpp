#include "data/images.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/input_file.h"
#include "base/text.h"
#include "data/dataset.h"
#include "data/image_file.h"

namespace penstock {
namespace {

constexpr std::int64_t kMostPixels = 256 << 20;

}  // namespace

void refuse_image(const std::string& path, const std::string& why, std::FILE* file) {
  if (file != nullptr && std::ferror(file) != 0) throw RunError(fmt::format("cannot read {}", path));
  throw SampleError(fmt::format("image {} cannot be used: {}", printable(path), printable(why)));
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
  ImageFile file(std::fopen(path.c_str(), "rbe"));
  if (!file) refuse_image(path, std::strerror(errno));
  std::array<unsigned char, 4> magic{};
  const std::size_t got = std::fread(magic.data(), 1, magic.size(), file.get());
  std::rewind(file.get());
  if (got >= 2 && magic[0] == 0xff && magic[1] == 0xd8) return open_jpeg(path, std::move(file), options);
  if (got == 4 && magic[0] == 0x89 && magic[1] == 'P' && magic[2] == 'N' && magic[3] == 'G') {
    return open_png(path, std::move(file), options);
  }
  refuse_image(path, got == 0 ? "it is empty" : "it is neither JPEG nor PNG", file.get());
}

}  // namespace penstock
