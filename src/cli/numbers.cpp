#include "cli/numbers.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <string>

#include "cli/read_number.h"

namespace penstock::cli {
namespace {

CLI::Validator number(const std::string& description, const std::function<bool(double)>& takes,
                      const std::string& name) {
  return {[=](std::string& text) {
            double value = 0;
            const bool right = read_number(text, value) && std::isfinite(value) && takes(value);
            return right ? std::string() : fmt::format("'{}' is not {}", text, description);
          },
          name};
}

}  // namespace

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  std::string name = least == 1 ? "POSITIVE" : fmt::format("{} or more", least);
  std::string description = least == 1 ? "above 0" : fmt::format("from {} on", least);
  if (most != kNoMost) {
    name = fmt::format("{} to {}", least, most);
    description = "from " + name;
  }
  return {[=](std::string& text) {
            std::uint64_t value = 0;
            const bool right = read_number(text, value) && value >= least && value <= most;
            return right ? std::string() : fmt::format("'{}' is not a whole number {}", text, description);
          },
          name};
}

CLI::Validator number_above_zero() {
  return number(
      "a number above 0", [](double value) { return value > 0; }, "POSITIVE");
}

CLI::Validator number_from_zero() {
  return number(
      "a number from 0 on", [](double value) { return value >= 0; }, "0 or more");
}

CLI::Validator share() {
  return number(
      "a number from 0 to 1", [](double value) { return value >= 0 && value <= 1; }, "0 to 1");
}

}  // namespace penstock::cli
