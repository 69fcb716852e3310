#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::report {

/// Text for a place between tags or in a quoted attribute: markup characters escaped, bytes that are not
/// UTF-8 and control characters replaced.
std::string escape(std::string_view text);

/// "812 ms", "7.11 s", "3:20": what a person reads.
std::string seconds_text(double seconds);
/// "4.52", "128": a rate with three digits.
std::string rate_text(double rate);
/// "350 MB/s"
std::string bandwidth_text(double bytes_per_second);
/// "12.5 %"
std::string percent_text(double share);

}  // namespace penstock::report
