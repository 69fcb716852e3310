#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock {

inline constexpr std::int64_t kKiB = 1024;
inline constexpr std::int64_t kMiB = 1024 * kKiB;
inline constexpr std::int64_t kGiB = 1024 * kMiB;

/// Parses "1GiB", "800MiB", "2GB", "1.5 GiB", "4096"; decimal units are powers of 1000, binary ones of 1024.
/// Throws UserError that names `what` (an option) and the text.
std::int64_t parse_bytes(std::string_view text, std::string_view what);

/// "1.50 GiB", "812 MiB", "640 B": three significant digits, binary units.
std::string format_bytes(std::int64_t bytes);

constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace penstock
