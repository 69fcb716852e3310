#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace penstock {
namespace {

/// Text in a one-line message is cut at this many bytes.
constexpr std::size_t kLongestText = 120;

bool continues(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80U;
}

/// Bytes of the UTF-8 character that begins at `at`, and the character itself; 0 if there is none.
std::size_t character_at(std::string_view text, std::size_t at, unsigned& character) {
  const auto first = static_cast<unsigned char>(text[at]);
  character = first;
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  character = first & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text, at + i)) return 0;
    character = character << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3fU);
  }
  // Longer than need be, half of a surrogate pair, or beyond the last one.
  const bool overlong = (length == 3 && character < 0x800) || (length == 4 && character < 0x10000);
  if (overlong || (character >= 0xd800 && character < 0xe000) || character > 0x10ffff) return 0;
  return length;
}

bool is_control(unsigned character) {
  // Beside ASCII's and Latin-1's: marks that turn the direction of writing, and line ends of Unicode.
  return character < 0x20 || (character >= 0x7f && character < 0xa0) || character == 0x061c ||
         (character >= 0x200e && character <= 0x200f) || (character >= 0x2028 && character <= 0x202e) ||
         (character >= 0x2066 && character <= 0x2069);
}

}  // namespace

std::string without_controls(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    unsigned character = 0;
    const std::size_t length = character_at(text, at, character);
    const bool kept = length > 0 && (!is_control(character) || character == '\n' || character == '\t');
    if (kept) {
      clean += text.substr(at, length);
    } else {
      clean += '?';
    }
    at += std::max<std::size_t>(length, 1);
  }
  return clean;
}

std::string printable(std::string_view text) {
  std::size_t end = std::min(text.size(), kLongestText);
  while (end > 0 && end < text.size() && continues(text, end)) --end;
  std::string line = without_controls(text.substr(0, end));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, '?');
  if (end < text.size()) line += "...";
  return line;
}

std::string to_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    unsigned character = 0;
    const std::size_t length = character_at(text, at, character);
    if (length > 0) {
      result += text.substr(at, length);
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    }
    at += std::max<std::size_t>(length, 1);
  }
  return result;
}

std::string json_string(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : to_utf8(text)) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted += '"';
}

bool nests_deeper_than(std::string_view json, int limit) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (in_string) {
      if (c == '\\') ++at;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limit) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace penstock
