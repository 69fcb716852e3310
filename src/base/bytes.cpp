#include "base/bytes.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace penstock {

std::int64_t parse_bytes(std::string_view text, std::string_view what) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit;
  for (const char* c = end; c != text.data() + text.size(); ++c) {
    if (*c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  }
  static constexpr std::array<std::pair<std::string_view, double>, 14> kUnits{{{"", 1},
                                                                               {"b", 1},
                                                                               {"k", 1e3},
                                                                               {"kb", 1e3},
                                                                               {"kib", 1024.0},
                                                                               {"m", 1e6},
                                                                               {"mb", 1e6},
                                                                               {"mib", 1048576.0},
                                                                               {"g", 1e9},
                                                                               {"gb", 1e9},
                                                                               {"gib", 1073741824.0},
                                                                               {"t", 1e12},
                                                                               {"tb", 1e12},
                                                                               {"tib", 1099511627776.0}}};
  if (error == std::errc() && std::isfinite(number) && number >= 0) {
    for (const auto& [name, factor] : kUnits) {
      if (unit == name && number * factor < 9e18)
        return static_cast<std::int64_t>(std::llround(number * factor));
    }
  }
  throw UserError(fmt::format(
      "{}: '{}' is not a size; write a number and a unit, such as 800MiB, 1GiB or 2GB", what, text));
}

std::string format_bytes(std::int64_t bytes) {
  static constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  const int digits = std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, kUnits[unit]);
}

}  // namespace penstock
