#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/text_file.h"
#include "support/run_program.h"

namespace penstock::testing {

using Arguments = std::vector<std::string>;

inline Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

#ifdef PENSTOCK_MPIEXEC

/// The program that was built with these tests, on so many ranks.
inline Arguments ranks_command(int ranks, const Arguments& arguments) {
  return Arguments{PENSTOCK_MPIEXEC, "-n", std::to_string(ranks), PENSTOCK_BINARY_DIR "/penstock"} +
         arguments;
}

inline Outcome run_ranks(int ranks, const Arguments& arguments) {
  return run_program(ranks_command(ranks, arguments));
}

/// Rank 0 gets other arguments than rank 1.
inline Outcome run_two(const Arguments& first, const Arguments& second) {
  return run_program(ranks_command(1, first) + Arguments{":", "-n", "1", PENSTOCK_BINARY_DIR "/penstock"} +
                     second);
}

/// Runs with --json and returns what rank 0 wrote; the arguments must be good ones.
inline nlohmann::json ranks_json(int ranks, const Arguments& arguments) {
  const TemporaryFolder folder;
  const Arguments all = arguments + Arguments{"--quiet", "--json", folder.file("result.json")};
  const Outcome outcome = run_ranks(ranks, all);
  if (outcome.exit_code != 0) {
    throw std::runtime_error("exit code " + std::to_string(outcome.exit_code) + ": " + outcome.err);
  }
  return nlohmann::json::parse(read_file(folder.file("result.json")));
}

#endif

}  // namespace penstock::testing
