#pragma once

#include <gtest/gtest.h>

#include <regex>

#include "cli/penstock.h"

namespace penstock::testing {

inline std::vector<std::string> with(std::vector<std::string> arguments,
                                     const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// The smallest budget in MiB, as the refusal of one that is too small names it.
inline std::int64_t smallest_mib(const std::vector<std::string>& arguments, const std::string& policy) {
  const Outcome outcome = penstock(with(arguments, {"--memory", "32MiB", "--policy", policy}));
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  std::smatch match;
  if (!std::regex_search(outcome.err, match, std::regex("--memory (\\d+)MiB"))) {
    ADD_FAILURE() << outcome.err;
    return 0;
  }
  return std::stoll(match[1]);
}

}  // namespace penstock::testing
