#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "data/images.h"

namespace penstock {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using ImageFile = std::unique_ptr<std::FILE, CloseFile>;

/// Throws SampleError: the image at `path` cannot be used, because `why`. RunError if the disk failed
/// instead.
[[noreturn]] void refuse_image(const std::string& path, const std::string& why, std::FILE* file = nullptr);

/// Refuses sizes that no photograph has: a small file that unfolds into them is an attack on time or memory.
void check_image_size(const std::string& path, std::int64_t width, std::int64_t height);

/// Refuses an image whose decoding needs more memory than `limit_bytes`.
void check_image_memory(const std::string& path, std::int64_t needed_bytes, std::int64_t limit_bytes);

std::unique_ptr<ImageRows> open_jpeg(const std::string& path, ImageFile file, const DecodeOptions& options);
std::unique_ptr<ImageRows> open_png(const std::string& path, ImageFile file, const DecodeOptions& options);

}  // namespace penstock
