#include "report/markup.h"

#include <fmt/format.h>

#include <cmath>

namespace penstock::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Bytes of the UTF-8 sequence that `text` starts with; 0 if it is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first < 0xE0   ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return 0;
  }
  // Overlong forms, surrogates, the two non-characters that XML forbids, and what is beyond Unicode.
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) >= 0xA0) return 0;
  if (first == 0xEF && byte(1) == 0xBF && byte(2) >= 0xBE) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) >= 0x90) return 0;
  return length;
}

}  // namespace

std::string escape(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const char c = text[0];
    if (length == 0 || static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      result += c == '\n' || c == '\t' ? " " : kReplacement;
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (c == '\'') {
      result += "&#39;";
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

std::string seconds_text(double seconds) {
  if (seconds < -1e-7) return fmt::format("-{}", seconds_text(-seconds));
  if (seconds < 1e-7) return "0 s";
  if (seconds < 1e-3) return fmt::format("{:.3g} µs", seconds * 1e6);
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 9.995) return fmt::format("{:.2f} s", seconds);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<long>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02} h", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string rate_text(double rate) {
  if (rate < 9.995) return fmt::format("{:.2f}", rate);
  if (rate < 99.95) return fmt::format("{:.1f}", rate);
  return fmt::format("{:.0f}", rate);
}

std::string bandwidth_text(double bytes_per_second) {
  if (bytes_per_second >= 999.5e6) return fmt::format("{:.2f} GB/s", bytes_per_second / 1e9);
  if (bytes_per_second >= 999.5e3) return fmt::format("{:.0f} MB/s", bytes_per_second / 1e6);
  return fmt::format("{:.0f} kB/s", bytes_per_second / 1e3);
}

std::string percent_text(double share) {
  const double percent = share * 100;
  return percent != 0 && std::fabs(percent) < 9.95 ? fmt::format("{:.1f} %", percent)
                                                   : fmt::format("{:.0f} %", percent);
}

}  // namespace penstock::report
