#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/image_source.h"
#include "data/images.h"

namespace penstock {

/// Throws SampleError: the image at `path` cannot be used, because `why`.
[[noreturn]] void refuse_image(const std::string& path, const std::string& why);
/// The same for a file that is being read; RunError if it was the disk that failed.
[[noreturn]] void refuse_image(const ImageSource& source, const std::string& why);

/// Refuses sizes that no photograph has: a small file that unfolds into them is an attack on time or memory.
void check_image_size(const std::string& path, std::int64_t width, std::int64_t height);

/// Refuses an image whose decoding needs more memory than `limit_bytes`.
void check_image_memory(const std::string& path, std::int64_t needed_bytes, std::int64_t limit_bytes);

std::unique_ptr<ImageRows> open_jpeg(ImageSource source, const DecodeOptions& options);
std::unique_ptr<ImageRows> open_png(ImageSource source, const DecodeOptions& options);

}  // namespace penstock
