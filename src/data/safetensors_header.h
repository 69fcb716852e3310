#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/safetensors.h"

namespace penstock {

/// What the JSON text of a safetensors file says, in the order of the data.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;
  std::vector<std::uint32_t> by_name;  ///< places in `tensors`, sorted by their names
  std::map<std::string, std::string> metadata;
};

/// Parses and checks the header's text against the `data_bytes` that follow it: known types, no name twice,
/// sizes that agree, tensors that cover the data without gap or overlap. Throws UserError naming `path`.
SafetensorsHeader parse_safetensors_header(const std::string& text, std::int64_t data_bytes,
                                           const std::string& path);

}  // namespace penstock
