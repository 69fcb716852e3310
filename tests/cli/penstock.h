#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text_file.h"
#include "support/run_program.h"

namespace penstock::testing {

/// Runs the program that was built with these tests.
inline Outcome penstock(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), PENSTOCK_BINARY_DIR "/penstock");
  return run_program(arguments);
}

/// Runs it with --json and returns what it wrote; the arguments must be good ones.
inline nlohmann::json penstock_json(std::vector<std::string> arguments) {
  const TemporaryFolder folder;
  for (const char* more : {"--quiet", "--json"}) arguments.emplace_back(more);
  arguments.push_back(folder.file("result.json"));
  const Outcome outcome = penstock(arguments);
  if (outcome.exit_code != 0)
    throw std::runtime_error("exit code " + std::to_string(outcome.exit_code) + ": " + outcome.err);
  return nlohmann::json::parse(read_file(folder.file("result.json")));
}

}  // namespace penstock::testing
