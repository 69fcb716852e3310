#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/long_vector.h"

namespace penstock {

/// A whole number out of JSON that anyone may have written. (The library converts 1e99 as well, to nothing in
/// particular.) Throws UserError.
template <typename Int, typename Json>
Int whole_number(const Json& json) {
  static_assert(std::is_integral_v<Int>);
  if (!json.is_number_integer()) throw UserError("a number that must be whole is not");
  const auto fits = [](auto number) {
    if constexpr (std::is_signed_v<decltype(number)>) {
      if (number < 0 &&
          (std::is_unsigned_v<Int> || number < static_cast<std::int64_t>(std::numeric_limits<Int>::min())))
        return false;
      if (number < 0) return true;
    }
    return static_cast<std::uint64_t>(number) <= static_cast<std::uint64_t>(std::numeric_limits<Int>::max());
  };
  const bool has_room = json.is_number_unsigned() ? fits(json.template get<std::uint64_t>())
                                                  : fits(json.template get<std::int64_t>());
  if (!has_room) throw UserError("a number is impossibly large");
  return json.template get<Int>();
}

/// Of an array.
template <typename Int, typename Json>
LongVector<Int> whole_numbers(const Json& json) {
  if (!json.is_array()) throw UserError("what must be a list of numbers is not");
  LongVector<Int> numbers;
  numbers.reserve(json.size());
  for (const Json& number : json) numbers.push_back(whole_number<Int>(number));
  return numbers;
}

}  // namespace penstock
