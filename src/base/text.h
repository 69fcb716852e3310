#pragma once

#include <string>
#include <string_view>

namespace penstock {

/// Text out of a file or from a user, fit for one line on a terminal: control characters (escape sequences
/// begin with one) and bytes that are not UTF-8 become '?', long text is cut.
std::string printable(std::string_view text);

/// The same for text of any length that may have several lines, such as a message that quotes a file: line
/// ends and tabs stay.
std::string without_controls(std::string_view text);

/// UTF-8, as JSON needs it: what is not becomes \xNN, so that paths in any encoding can be written down.
/// UTF-8 stays as it is.
std::string to_utf8(std::string_view text);

/// A JSON string with its quotes; what is not UTF-8 is escaped as by to_utf8().
std::string json_string(std::string_view text);

/// Whether JSON text has brackets more than `limit` deep: a parser that calls itself would run out of stack.
/// Brackets in strings do not count.
bool nests_deeper_than(std::string_view json, int limit);

}  // namespace penstock
