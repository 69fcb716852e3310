#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/penstock.h"

namespace penstock::testing {

/// The program says one line on stderr that contains `text`, and its exit code is 2.
inline void expect_refused(const std::vector<std::string>& arguments, const std::string& text) {
  const Outcome outcome = penstock(arguments);
  const std::string said = ::testing::PrintToString(arguments) + "\n" + outcome.err;
  EXPECT_EQ(outcome.exit_code, 2) << said;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << said;
  EXPECT_NE(outcome.err.find(text), std::string::npos) << "expected '" << text << "' in: " << said;
}

}  // namespace penstock::testing
