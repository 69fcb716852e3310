#include "data/idx.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "data/gzip_reader.h"

namespace penstock {
namespace {

constexpr std::int64_t kWordBytes = 4;

std::int64_t read_word(GzipReader& reader) {
  std::array<std::uint8_t, kWordBytes> bytes{};
  reader.read(bytes.data(), kWordBytes);
  return std::int64_t{bytes[0]} << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

/// Reads the magic number and the sizes; checks that the file can hold what they say.
std::vector<std::int64_t> read_sizes(GzipReader& reader, const std::string& path, std::int64_t dimensions) {
  const std::int64_t unsigned_bytes = 0x0800;
  const std::int64_t magic = read_word(reader);
  if (magic != (unsigned_bytes | dimensions)) {
    throw UserError(fmt::format("{} is not an IDX file of {}: it begins with {:08x}, not {:08x}", path,
                                dimensions == 1 ? "labels" : "images", magic, unsigned_bytes | dimensions));
  }
  std::vector<std::int64_t> sizes;
  std::int64_t total = 1;
  bool too_large = false;
  for (std::int64_t i = 0; i < dimensions; ++i) {
    sizes.push_back(read_word(reader));
    too_large = too_large || __builtin_mul_overflow(total, sizes.back(), &total);
  }
  if (total == 0) throw UserError(fmt::format("{} is empty", path));
  if (too_large || total > reader.largest_content_bytes()) {
    throw UserError(fmt::format("{} is cut short: its header promises more bytes than it can hold", path));
  }
  return sizes;
}

}  // namespace

IdxImages open_idx_images(const std::string& path, std::int64_t limit_bytes) {
  GzipReader reader(path);
  const auto sizes = read_sizes(reader, path, 3);
  const std::int64_t image_bytes = sizes[1] * sizes[2];
  const std::int64_t total_bytes = sizes[0] * image_bytes;
  if (reader.gzipped()) {
    return {sizes[1], sizes[2], ByteStore(reader.read_all(total_bytes, limit_bytes), image_bytes)};
  }
  InputFile file(path);
  const std::int64_t header_bytes = 4 * kWordBytes;
  if (file.size_bytes() != header_bytes + total_bytes) {
    throw UserError(fmt::format("{} is {}: it has {} bytes, its header promises {}", path,
                                file.size_bytes() < header_bytes + total_bytes ? "cut short" : "too long",
                                file.size_bytes(), header_bytes + total_bytes));
  }
  ByteStore store(image_bytes);
  store.add_file(std::move(file), header_bytes, image_bytes, sizes[0]);
  return {sizes[1], sizes[2], std::move(store)};
}

std::vector<std::uint8_t> read_idx_labels(const std::string& path, std::int64_t limit_bytes) {
  GzipReader reader(path);
  const auto sizes = read_sizes(reader, path, 1);
  return reader.read_all(sizes[0], limit_bytes);
}

}  // namespace penstock
