#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "base/error.h"
#include "base/text.h"
#include "data/safetensors.h"

namespace penstock {
namespace {

std::string metadata_text(const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : metadata) parts.push_back(json_string(key) + ":" + json_string(value));
  return fmt::format("\"__metadata__\":{{{}}}", fmt::join(parts, ","));
}

/// The header's text, and in data_bytes the size of what follows.
std::string make_header(const std::vector<SafetensorsSpec>& tensors,
                        const std::map<std::string, std::string>& metadata, const std::string& path,
                        std::int64_t& data_bytes) {
  std::vector<std::string> parts;
  if (!metadata.empty()) parts.push_back(metadata_text(metadata));
  std::set<std::string> names;
  data_bytes = 0;
  for (const SafetensorsSpec& tensor : tensors) {
    const std::int64_t element_bytes = safetensors_element_bytes(tensor.type);
    require(element_bytes != 0, "unknown safetensors type");
    require(data_bytes % element_bytes == 0, "declare safetensors of larger elements first");
    require(names.insert(tensor.name).second, "two safetensors of one name");
    if (to_utf8(tensor.name) != tensor.name) {
      throw UserError(
          fmt::format("cannot write '{}': the name of tensor '{}' is not UTF-8", path, to_utf8(tensor.name)));
    }
    std::int64_t bytes = element_bytes;
    for (const std::int64_t size : tensor.shape) bytes *= size;
    parts.push_back(fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                                json_string(tensor.name), tensor.type, fmt::join(tensor.shape, ","),
                                data_bytes, data_bytes + bytes));
    data_bytes += bytes;
  }
  std::string text = fmt::format("{{{}}}", fmt::join(parts, ","));
  // The data begins at a multiple of 8.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::string& path, const std::vector<SafetensorsSpec>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : header_(make_header(tensors, metadata, path, bytes_left_)), file_(path) {
  const std::uint64_t header_bytes = header_.size();
  file_.write(&header_bytes, sizeof(header_bytes));
  file_.write(header_.data(), static_cast<std::int64_t>(header_.size()));
  header_ = std::string();
}

void SafetensorsWriter::append(const void* data, std::int64_t size_bytes) {
  require(!committed_ && size_bytes <= bytes_left_, "more safetensors data than was declared");
  file_.write(data, size_bytes);
  bytes_left_ -= size_bytes;
}

void SafetensorsWriter::sync() {
  require(!committed_ && bytes_left_ == 0, "less safetensors data than was declared");
  file_.sync();
}

void SafetensorsWriter::commit() {
  require(!committed_ && bytes_left_ == 0, "less safetensors data than was declared");
  file_.commit();
  committed_ = true;
}

}  // namespace penstock
