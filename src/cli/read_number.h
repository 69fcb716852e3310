#pragma once

#include <charconv>
#include <string>
#include <system_error>

namespace penstock::cli {

/// The whole of a text as a number; false if it is none, or one that the type does not hold.
template <typename Number>
bool read_number(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end;
}

}  // namespace penstock::cli
