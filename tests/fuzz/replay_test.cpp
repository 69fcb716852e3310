#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/random.h"
#include "fuzz/targets.h"

namespace penstock::fuzz {
namespace {

namespace fs = std::filesystem;

class Replay : public ::testing::TestWithParam<Target> {};

std::vector<std::string> corpus_of(const Target& target) {
  std::vector<fs::path> paths;
  for (const auto& entry :
       fs::directory_iterator(fs::path(PENSTOCK_SOURCE_DIR) / "tests/fuzz/corpus" / target.name)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs;
  for (const fs::path& path : paths) {
    std::ifstream stream(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return inputs;
}

TEST_P(Replay, EveryFileOfTheCorpus) {
  const std::vector<std::string> inputs = corpus_of(GetParam());
  EXPECT_GE(inputs.size(), 2U);
  for (const std::string& input : inputs) run(GetParam(), input);
}

/// What a fuzzer would begin with: bits flipped, parts cut out, doubled and exchanged.
TEST_P(Replay, DamagedFilesOfTheCorpus) {
  const std::vector<std::string> inputs = corpus_of(GetParam());
  const CounterRandom random(5, RandomPurpose::synthetic, 0, 0);
  std::uint64_t draws = 0;
  const auto below = [&](std::size_t bound) { return bound == 0 ? 0 : random.bits(draws++) % bound; };
  for (int round = 0; round < 400; ++round) {
    std::string input = inputs[below(inputs.size())];
    for (std::size_t changes = 1 + below(4); changes > 0 && !input.empty(); --changes) {
      const std::size_t at = below(input.size());
      const std::size_t length = 1 + below(std::min<std::size_t>(input.size() - at, 32));
      switch (below(5)) {
        case 0:
          input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
          break;
        case 1:
          input[at] = static_cast<char>(below(2) == 0 ? 0xff : 0);
          break;
        case 2:
          input.erase(at, length);
          break;
        case 3:
          input.insert(at, input.substr(at, length));
          break;
        default:
          input.resize(at);
      }
    }
    run(GetParam(), input);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Replay, ::testing::ValuesIn(targets()),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace penstock::fuzz
