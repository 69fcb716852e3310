#include "data/checkpoint_format.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace penstock {

void HeaderChecksum::add(const std::string& text) {
  add(static_cast<std::int64_t>(text.size()));
  bytes_ += text;
}

void HeaderChecksum::add(std::int64_t number) {
  for (int shift = 0; shift < 64; shift += 8) {
    bytes_ += static_cast<char>(static_cast<std::uint64_t>(number) >> shift & 0xffU);
  }
}

void HeaderChecksum::add_metadata(const std::map<std::string, std::string>& metadata) {
  for (const auto& [key, value] : metadata) {
    if (key == kHeaderChecksum) continue;
    add(key);
    add(value);
  }
}

void HeaderChecksum::add_tensor(const std::string& name, const std::vector<std::int64_t>& shape) {
  add(name);
  add(static_cast<std::int64_t>(shape.size()));
  for (const std::int64_t size : shape) add(size);
}

std::string HeaderChecksum::text() const {
  return fmt::format("{:016x}", XXH3_64bits(bytes_.data(), bytes_.size()));
}

std::uint64_t values_checksum(const float* values, std::int64_t size_bytes) {
  return XXH3_64bits(values, static_cast<std::size_t>(size_bytes));
}

}  // namespace penstock
