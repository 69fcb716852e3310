#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/bytes.h"
#include "cli/penstock.h"

namespace penstock::testing {
namespace {

/// Policy auto on a small residual network, with a cache directory of its own.
class BudgetAuto : public ::testing::Test {
 protected:
  BudgetAuto() { ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1); }
  ~BudgetAuto() override { ::unsetenv("XDG_CACHE_HOME"); }

  static nlohmann::json result_of(const char* command, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{command,   "resnet20", "--image-size", "32",
                                       "--batch", "96",       "--threads",    "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return penstock_json(arguments);
  }
  static nlohmann::json train(std::vector<std::string> more) {
    more.insert(more.begin(), {"--steps", "6"});
    return result_of("train", more);
  }

  /// A third of the way from the smallest budget to all in memory: what the program itself takes differs from
  /// machine to machine.
  static std::string tight() {
    const auto plan = result_of("plan", {});
    const std::int64_t least = plan["smallest_bytes"], most = plan["in_memory_bytes"];
    return std::to_string((2 * least + most) / 3 / kMiB) + "MiB";
  }

  /// The one profile in the cache.
  std::string profile_file() const {
    const std::vector<std::string> files = cache_.list();
    EXPECT_EQ(files.size(), 2U);
    EXPECT_EQ(files.at(0), "penstock");
    return cache_.file(files.at(1));
  }

  TemporaryFolder cache_;
};

TEST_F(BudgetAuto, IsTheDefaultAndGivesTheSameBits) {
  const auto whole = train({"--policy", "keep"});
  const std::string budget = tight();
  const auto measured = train({"--memory", budget});
  EXPECT_EQ(measured["policy"], "auto");
  EXPECT_EQ(measured["profile_source"], "measured");
  EXPECT_EQ(measured["weights_sha256"], whole["weights_sha256"]);
  EXPECT_LE(measured["peak_rss_bytes"], measured["budget_bytes"]);
  EXPECT_EQ(measured["pool_peak_bytes"], measured["planned_peak_bytes"]);
  EXPECT_GT(measured["predicted_step_seconds"], 0);
  const auto cached = train({"--memory", budget});
  EXPECT_EQ(cached["profile_source"], "cached");
  EXPECT_EQ(cached["weights_sha256"], whole["weights_sha256"]);
}

TEST_F(BudgetAuto, RecomputesWhereTheTierIsSlow) {
  const auto whole = train({"--policy", "keep"});
  const std::string budget = tight();
  const auto part = train({"--memory", budget, "--tier", "ram", "--tier-bandwidth", "80MB/s"});
  EXPECT_GT(part["recompute_seconds"], 0);
  EXPECT_EQ(part["weights_sha256"], whole["weights_sha256"]);
  EXPECT_LE(part["peak_rss_bytes"], part["budget_bytes"]);
}

TEST_F(BudgetAuto, PlansAgainWhenTheTierIsNotWhatWasMeasured) {
  const auto whole = train({"--policy", "keep"});
  const std::string budget = tight();
  for (const char* pool : {"virtual", "packed"}) {
    const std::vector<std::string> slow{"--memory",         budget,   "--tier", "ram",
                                        "--tier-bandwidth", "80MB/s", "--pool", pool};
    train(slow);
    auto profile = nlohmann::json::parse(read_file(profile_file()));
    for (auto& [key, value] : profile["tier"].items()) {
      if (value.is_number() && key.find("bandwidth") != std::string::npos) value = 1e11;
    }
    const TemporaryFolder folder;
    std::ofstream(folder.file("profile.json")) << profile;
    std::vector<std::string> wrong = slow;
    wrong.insert(wrong.end(), {"--profile", folder.file("profile.json")});
    const auto part = train(wrong);
    EXPECT_EQ(part["pool"], pool);
    EXPECT_GE(part["replans"], 1) << pool;
    EXPECT_EQ(part["weights_sha256"], whole["weights_sha256"]) << pool;
    EXPECT_LE(part["peak_rss_bytes"], part["budget_bytes"]) << pool;
  }
}

TEST_F(BudgetAuto, ADamagedCacheIsMeasuredAnewAndADamagedFileRefused) {
  const std::vector<std::string> half{"--memory", tight(), "--policy", "auto", "--steps", "1"};
  train(half);
  std::ofstream(profile_file()) << "{\"version\": 1, \"op_seconds\": [[1e999";
  EXPECT_EQ(train(half)["profile_source"], "measured");
  for (const std::string& file : {cache_.file("none.json"), std::string(PENSTOCK_SOURCE_DIR "/README.md")}) {
    const Outcome outcome = penstock({"train", "resnet20", "--image-size", "32", "--batch", "96", "--steps",
                                      "1", "--memory", half[1], "--profile", file});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_NE(outcome.err.find(file), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST_F(BudgetAuto, DynamicKernelsAreMeasuredAndChosenWithinTheBudget) {
  const auto fixed = train({"--policy", "keep", "--steps", "2"});
  for (const char* pool : {"virtual", "packed"}) {
    const auto part = train({"--memory", tight(), "--kernels", "dynamic", "--steps", "2", "--pool", pool});
    EXPECT_EQ(part["pool"], pool);
    EXPECT_LE(part["peak_rss_bytes"], part["budget_bytes"]);
    EXPECT_EQ(part["pool_peak_bytes"], part["planned_peak_bytes"]);
    EXPECT_NEAR(part["loss"][1], fixed["loss"][1], 1e-3);
  }
  const Outcome outcome = penstock({"train", "lenet", "--steps", "1", "--kernels", "some"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("'some'"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace penstock::testing
