#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/text.h"
#include "data/safetensors.h"
#include "data/safetensors_header.h"

namespace penstock {
namespace {

/// The file begins with the length of its header.
constexpr std::int64_t kLengthBytes = 8;
/// Some 100,000 tensors; what is read from it takes a few times as much.
constexpr std::uint64_t kLongestHeader = 16 << 20;

float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16;
  const std::uint32_t exponent = half >> 10 & 0x1fU;
  const std::uint32_t fraction = half & 0x3ffU;
  if (exponent == 0) {
    const float value = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

template <typename Stored>
Stored load(const char* at) {
  Stored value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

using Convert = float (*)(const char*);

Convert converter(const std::string& type) {
  if (type == "F16") return [](const char* at) { return half_to_float(load<std::uint16_t>(at)); };
  if (type == "BF16") {
    return [](const char* at) { return std::bit_cast<float>(std::uint32_t{load<std::uint16_t>(at)} << 16); };
  }
  if (type == "F64") return [](const char* at) { return static_cast<float>(load<double>(at)); };
  if (type == "I64") return [](const char* at) { return static_cast<float>(load<std::int64_t>(at)); };
  return nullptr;
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  SafetensorsFile result{InputFile(path)};
  const std::int64_t file_bytes = result.file_.size_bytes();
  std::uint64_t header_bytes = 0;
  if (file_bytes >= kLengthBytes) result.file_.read_at(0, &header_bytes, kLengthBytes);
  if (header_bytes > kLongestHeader && header_bytes <= static_cast<std::uint64_t>(file_bytes)) {
    throw UserError(fmt::format("{} has a header of {}, more than the {} that are read", path,
                                format_bytes(static_cast<std::int64_t>(header_bytes)),
                                format_bytes(static_cast<std::int64_t>(kLongestHeader))));
  }
  if (file_bytes < kLengthBytes || header_bytes > kLongestHeader ||
      static_cast<std::int64_t>(header_bytes) > file_bytes - kLengthBytes) {
    throw UserError(fmt::format("{} is not a safetensors file, or is cut short: {} bytes, a header of {}",
                                path, file_bytes, header_bytes));
  }
  std::string text(header_bytes, '\0');
  result.file_.read_at(kLengthBytes, text.data(), static_cast<std::int64_t>(header_bytes));
  result.data_offset_bytes_ = kLengthBytes + static_cast<std::int64_t>(header_bytes);
  SafetensorsHeader header = parse_safetensors_header(text, file_bytes - result.data_offset_bytes_, path);
  result.tensors_ = std::move(header.tensors);
  result.metadata_ = std::move(header.metadata);
  result.by_name_ = std::move(header.by_name);
  return result;
}

const SafetensorsEntry* SafetensorsFile::find(const std::string& name) const {
  const auto at =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](std::uint32_t i, const std::string& wanted) { return tensors_[i].name < wanted; });
  return at == by_name_.end() || tensors_[*at].name != name ? nullptr : &tensors_[*at];
}

const SafetensorsEntry& SafetensorsFile::entry(const std::string& name) const {
  const SafetensorsEntry* found = find(name);
  if (found == nullptr) throw UserError(fmt::format("{} has no tensor '{}'", path(), name));
  return *found;
}

void SafetensorsFile::read(const std::string& name, void* to, std::int64_t offset_bytes,
                           std::int64_t size_bytes) const {
  const SafetensorsEntry& tensor = entry(name);
  require(offset_bytes >= 0 && size_bytes >= 0 && size_bytes <= tensor.size_bytes - offset_bytes,
          "a read beyond the tensor");
  file_.read_at(data_offset_bytes_ + tensor.offset_bytes + offset_bytes, to, size_bytes);
}

void SafetensorsFile::read_float(const std::string& name, float* to, std::int64_t first,
                                 std::int64_t count) const {
  const SafetensorsEntry& tensor = entry(name);
  if (tensor.type == "F32") {
    read(name, to, first * 4, count * 4);
    return;
  }
  const Convert convert = converter(tensor.type);
  if (convert == nullptr) {
    throw UserError(fmt::format("tensor '{}' of {} has type {}, which cannot be converted to float32",
                                printable(name), path(), tensor.type));
  }
  const std::int64_t element_bytes = safetensors_element_bytes(tensor.type);
  std::array<char, 16384> piece;
  while (count > 0) {
    const std::int64_t here =
        std::min<std::int64_t>(count, static_cast<std::int64_t>(piece.size()) / element_bytes);
    read(name, piece.data(), first * element_bytes, here * element_bytes);
    for (std::int64_t i = 0; i < here; ++i) *to++ = convert(piece.data() + i * element_bytes);
    first += here;
    count -= here;
  }
}

}  // namespace penstock
