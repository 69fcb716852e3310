#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

/// Which numbers an option takes, as CLI11's validators. They say so in words and with the number that was
/// given; CLI11's own would name the largest double there is, and take what is not a number.
namespace penstock::cli {

inline constexpr std::uint64_t kNoMost = std::numeric_limits<std::int64_t>::max();
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most = kNoMost);
CLI::Validator number_above_zero();
CLI::Validator number_from_zero();
CLI::Validator share();  ///< from 0 to 1

}  // namespace penstock::cli
