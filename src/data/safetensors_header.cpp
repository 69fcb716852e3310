#include "data/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace penstock {
namespace {

using nlohmann::json;

/// The header's object, a tensor in it, a list in that.
constexpr int kDeepest = 3;
constexpr const char* kMetadata = "__metadata__";

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw UserError(fmt::format("{} is not a sound safetensors file: {}", path, why));
}

/// The parser itself keeps the last of equal keys and nests without limit, so both are refused as they
/// appear.
json parse_strictly(const std::string& text, const std::string& path) {
  std::array<std::set<std::string>, kDeepest + 1> keys;
  const auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > kDeepest) refuse(path, "its header is nested too deeply");
    if (event == json::parse_event_t::object_start) keys.at(static_cast<std::size_t>(depth)).clear();
    if (event == json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys.at(static_cast<std::size_t>(depth) - 1).insert(key).second) {
        refuse(path, fmt::format("its header has '{}' twice", printable(key)));
      }
    }
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const json::exception&) {
    refuse(path, "its header is not JSON");
  }
}

bool read_sizes(const json& value, std::vector<std::int64_t>& sizes) {
  if (!value.is_array()) return false;
  for (const json& size : value) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > std::uint64_t{1} << 62) return false;
    sizes.push_back(size.get<std::int64_t>());
  }
  return true;
}

SafetensorsEntry read_entry(const std::string& name, const json& value, std::int64_t data_bytes,
                            const std::string& path) {
  const auto bad = [&](const char* why) {
    refuse(path, fmt::format("tensor '{}' {}", printable(name), why));
  };
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets") || !value["dtype"].is_string()) {
    bad("needs exactly dtype, shape and data_offsets");
  }
  SafetensorsEntry entry;
  entry.name = name;
  entry.type = value["dtype"].get<std::string>();
  const std::int64_t element_bytes = safetensors_element_bytes(entry.type);
  if (element_bytes == 0) bad("has an unknown dtype");
  std::vector<std::int64_t> offsets;
  if (!read_sizes(value["shape"], entry.shape)) bad("has a malformed shape");
  if (!read_sizes(value["data_offsets"], offsets) || offsets.size() != 2) bad("has malformed data_offsets");
  if (offsets[0] > offsets[1] || offsets[1] > data_bytes)
    bad("lies outside the file, which may be cut short");
  entry.elements = 1;
  for (const std::int64_t size : entry.shape) {
    if (__builtin_mul_overflow(entry.elements, size, &entry.elements)) bad("is impossibly large");
  }
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(entry.elements, element_bytes, &bytes) || bytes != offsets[1] - offsets[0]) {
    bad("has a shape and data_offsets that disagree");
  }
  entry.offset_bytes = offsets[0];
  entry.size_bytes = bytes;
  return entry;
}

}  // namespace

std::int64_t safetensors_element_bytes(const std::string& type) {
  static const std::map<std::string, std::int64_t> types{
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"U16", 2}, {"I16", 2}, {"F16", 2},
      {"BF16", 2}, {"U32", 4}, {"I32", 4}, {"F32", 4},     {"U64", 8},     {"I64", 8}, {"F64", 8}};
  const auto at = types.find(type);
  return at == types.end() ? 0 : at->second;
}

SafetensorsHeader parse_safetensors_header(const std::string& text, std::int64_t data_bytes,
                                           const std::string& path) {
  const json root = parse_strictly(text, path);
  if (!root.is_object()) refuse(path, "its header is not a JSON object");
  SafetensorsHeader header;
  for (const auto& [name, value] : root.items()) {
    if (name != kMetadata) {
      header.tensors.push_back(read_entry(name, value, data_bytes, path));
      continue;
    }
    if (!value.is_object()) refuse(path, "its metadata is malformed");
    for (const auto& [key, text_value] : value.items()) {
      if (!text_value.is_string()) refuse(path, "its metadata is not all text");
      header.metadata[key] = text_value.get<std::string>();
    }
  }
  std::sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.offset_bytes, a.size_bytes) < std::pair(b.offset_bytes, b.size_bytes);
  });
  std::int64_t end = 0;
  for (const SafetensorsEntry& entry : header.tensors) {
    if (entry.offset_bytes != end) {
      refuse(path, fmt::format("tensor '{}' {}", printable(entry.name),
                               entry.offset_bytes < end ? "overlaps another" : "leaves a gap before it"));
    }
    end += entry.size_bytes;
  }
  if (end != data_bytes) {
    refuse(path, fmt::format("it has {} bytes of data, its tensors take {}", data_bytes, end));
  }
  return header;
}

}  // namespace penstock
