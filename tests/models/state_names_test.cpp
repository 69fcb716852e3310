#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "models/network_graph.h"

namespace penstock {
namespace {

/// The lines that tests/golden/make_golden.py makes of a torchvision model's state dict.
std::vector<std::string> state_lines(const ir::Graph& graph) {
  std::vector<std::string> lines;
  for (const ir::Carried& state : graph.carried) {
    const ir::Tensor& tensor = graph.tensor(state.begin);
    lines.push_back(fmt::format("{} {}\n", tensor.name, tensor.shape.to_string()));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(StateNames, AreTorchvisions) {
  std::ifstream file(PENSTOCK_SOURCE_DIR "/tests/golden/state_dicts.json");
  const nlohmann::json digests = nlohmann::json::parse(file);
  EXPECT_EQ(digests.size(), 12U);
  for (const auto& [name, expected] : digests.items()) {
    const std::vector<std::string> lines = state_lines(models::graph_of(Network::model(name, {.batch = 2})));
    EXPECT_EQ(lines.size(), expected["count"].get<std::size_t>()) << name;
    Sha256 digest;
    for (const std::string& line : lines) digest.update(line.data(), line.size());
    EXPECT_EQ(digest.finish(), expected["sha256"].get<std::string>()) << name << ": first is " << lines[0];
  }
}

}  // namespace
}  // namespace penstock
