#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/byte_store.h"

namespace penstock {

/// The images of an IDX file (the format of MNIST): bytes, [count, height, width].
struct IdxImages {
  std::int64_t height;
  std::int64_t width;
  ByteStore pixels;
};

/// Opens an IDX file of images. A plain file stays on disk and is read image by image; a gzipped one is
/// inflated into memory, if that is not more than `limit_bytes`. Throws UserError if it is not such a file,
/// is cut short, damaged or too long.
IdxImages open_idx_images(const std::string& path, std::int64_t limit_bytes);

/// Reads an IDX file of labels, gzipped or not, into memory.
std::vector<std::uint8_t> read_idx_labels(const std::string& path, std::int64_t limit_bytes);

}  // namespace penstock
