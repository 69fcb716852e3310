#include <gtest/gtest.h>

#include <regex>

#include "base/bytes.h"
#include "cli/smallest.h"

namespace penstock::testing {
namespace {

const std::vector<std::string> kResidual{"train",   "resnet20", "--image-size", "32",
                                         "--batch", "96",       "--steps",      "5"};
const std::vector<std::string> kDropout{"train",   "alexnet", "--image-size", "64",   "--classes", "10",
                                        "--batch", "16",      "--lr",         "0.01", "--steps",   "3"};

TEST(Budget, SameBitsUnderAnyBudgetPolicyAndTier) {
  const auto whole = penstock_json(with(kResidual, {"--policy", "keep"}));
  const std::int64_t most = whole["in_memory_bytes"].get<std::int64_t>() / kMiB;
  const std::int64_t least = smallest_mib(kResidual, "window");
  ASSERT_GT(most, least + 32);
  for (int i = 0; i < 6; ++i) {
    const std::int64_t budget = least + (most - least) * i * i / 36;
    const auto part =
        penstock_json(with(kResidual, {"--memory", std::to_string(budget) + "MiB", "--policy", "window"}));
    EXPECT_EQ(part["weights_sha256"], whole["weights_sha256"]) << budget << " MiB";
    EXPECT_EQ(part["loss"], whole["loss"]);
    EXPECT_LE(part["peak_rss_bytes"], part["budget_bytes"]) << budget << " MiB";
    EXPECT_EQ(part["pool_peak_bytes"], part["planned_peak_bytes"]);
    EXPECT_GT(part["swapped_out_bytes"], 0);
  }
  const std::string tight = std::to_string(least + (most - least) / 8) + "MiB";
  for (const std::vector<std::string>& how : std::vector<std::vector<std::string>>{{"--tier", "disk-threads"},
                                                                                   {"--tier", "ram"},
                                                                                   {"--verify", "full"},
                                                                                   {"--verify", "off"},
                                                                                   {"--pool", "packed"},
                                                                                   {"--pool", "virtual"},
                                                                                   {"--window", "20MiB"}}) {
    const auto part = penstock_json(with(with(kResidual, {"--memory", tight, "--policy", "window"}), how));
    EXPECT_EQ(part["weights_sha256"], whole["weights_sha256"]) << how[1];
  }
  const std::string for_lms = std::to_string((most + least) / 2) + "MiB";
  const auto lms = penstock_json(with(kResidual, {"--memory", for_lms, "--policy", "lms"}));
  EXPECT_EQ(lms["weights_sha256"], whole["weights_sha256"]);
}

/// On slices of the batch, the same bits under any budget, policy and pool; the same result within rounding
/// as on the whole; and less memory will do.
TEST(Budget, SameBitsOnSlicesOfTheBatch) {
  // A small rate, because a large one makes more of rounding with each step.
  const auto slow = with(kResidual, {"--steps", "3", "--lr", "0.001"});
  const auto uncut = penstock_json(with(slow, {"--policy", "keep"}));
  const auto sliced = with(slow, {"--slice", "20"});
  const auto whole = penstock_json(with(sliced, {"--policy", "keep"}));
  for (std::size_t i = 0; i < uncut["loss"].size(); ++i)
    EXPECT_NEAR(whole["loss"][i].get<double>(), uncut["loss"][i].get<double>(), 1e-5);
  EXPECT_NE(whole["weights_sha256"], uncut["weights_sha256"]);
  const std::int64_t least = smallest_mib(sliced, "window");
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{"--policy", "window", "--evaluate"},
                                             {"--policy", "auto", "--pool", "packed"},
                                             {"--policy", "auto", "--pool", "virtual"},
                                             {"--policy", "superneurons"},
                                             {"--policy", "lms"}}) {
    const bool tight = how[1] == "window";
    const std::string budget = std::to_string(tight ? least + 4 : 2 * least) + "MiB";
    const auto part = penstock_json(with(with(sliced, {"--memory", budget}), how));
    EXPECT_EQ(part["weights_sha256"], whole["weights_sha256"]) << how[1];
    EXPECT_LE(part["peak_rss_bytes"], part["budget_bytes"]) << how[1];
  }
}

/// Many slices make a long step: what plans it once more needs memory, which the smallest budget has not set
/// aside. So it is not planned again there, however far a step is from its prediction.
TEST(Budget, TheSmallestOfALongStepHolds) {
  const std::vector<std::string> sliced{"train",   "resnet20", "--image-size", "16", "--batch",   "384",
                                        "--slice", "2",        "--steps",      "6",  "--profile", "fresh"};
  const std::string budget = std::to_string(smallest_mib(sliced, "auto")) + "MiB";
  const auto result = penstock_json(with(sliced, {"--memory", budget, "--tier-bandwidth", "300MB/s"}));
  EXPECT_LE(result["peak_rss_bytes"], result["budget_bytes"]);
  EXPECT_EQ(result["replans"], 0);
}

/// On bands of each image the same, with and without slices of the batch; and less memory will do.
TEST(Budget, SameBitsOnBandsOfAnImage) {
  const std::vector<std::string> images{"train",   "unet3d", "--image-size", "32",    "--batch", "2",
                                        "--steps", "2",      "--lr",         "0.001", "--slice", "1"};
  const auto uncut = penstock_json(with(images, {"--policy", "keep", "--slice", "0"}));
  const auto banded = with(images, {"--bands", "4"});
  const auto whole = penstock_json(with(banded, {"--policy", "keep"}));
  for (std::size_t i = 0; i < uncut["loss"].size(); ++i)
    EXPECT_NEAR(whole["loss"][i].get<double>(), uncut["loss"][i].get<double>(), 1e-5);
  EXPECT_NE(whole["weights_sha256"], uncut["weights_sha256"]);
  const std::int64_t least = smallest_mib(banded, "window");
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{"--policy", "window"},
                                             {"--policy", "auto", "--pool", "packed"},
                                             {"--policy", "auto", "--pool", "virtual"}}) {
    const std::string budget = std::to_string(how[1] == "window" ? least : least + 12) + "MiB";
    const auto part = penstock_json(with(with(banded, {"--memory", budget}), how));
    EXPECT_EQ(part["weights_sha256"], whole["weights_sha256"]) << how[1];
    EXPECT_LE(part["peak_rss_bytes"], part["budget_bytes"]) << how[1];
  }
  const std::vector<std::string> large{"train",   "unet3d", "--image-size", "128",
                                       "--batch", "1",      "--steps",      "1"};
  EXPECT_LT(2 * smallest_mib(large, "window"), smallest_mib(with(large, {"--bands", "1"}), "window"));
}

/// Measuring kernels makes the process larger by what training would touch as well: the budget that was named
/// before must do.
TEST(Budget, TheNamedBudgetTrainsThoughKernelsAreMeasuredFirst) {
  const std::vector<std::string> small{"train",     "resnet20", "--image-size", "32", "--batch", "32",
                                       "--profile", "fresh",    "--threads",    "2",  "--steps", "1"};
  const std::string budget = std::to_string(smallest_mib(small, "auto")) + "MiB";
  const auto result = penstock_json(with(small, {"--policy", "auto", "--memory", budget}));
  EXPECT_LE(result["peak_rss_bytes"], result["budget_bytes"]);
  EXPECT_EQ(result["profile_source"], "measured");
}

/// As the policies were published: no norm is made again unless a plan says so.
TEST(Budget, SameBitsWithoutWhatIsMadeAgainForAllPolicies) {
  const auto whole = penstock_json(with(kResidual, {"--policy", "keep", "--steps", "2"}));
  const auto published =
      penstock_json(with(kResidual, {"--policy", "keep", "--steps", "2", "--repeat-cheap", "off"}));
  EXPECT_EQ(published["weights_sha256"], whole["weights_sha256"]);
  EXPECT_GT(published["in_memory_bytes"], whole["in_memory_bytes"]);
}

TEST(Budget, SameBitsWithDropoutAndStateOnTheTier) {
  const auto whole = penstock_json(with(kDropout, {"--policy", "keep"}));
  const std::int64_t least = smallest_mib(kDropout, "window");
  const auto part = penstock_json(
      with(kDropout, {"--memory", std::to_string(least) + "MiB", "--policy", "window", "--evaluate"}));
  EXPECT_EQ(part["weights_sha256"], whole["weights_sha256"]);
  EXPECT_LE(part["peak_rss_bytes"], part["budget_bytes"]);
}

TEST(Budget, CheckpointsUnderABudgetResumeWithoutOne) {
  const TemporaryFolder folder;
  const std::int64_t least = smallest_mib(kResidual, "window");
  const auto whole = penstock_json(kResidual);
  penstock_json(with(kResidual, {"--steps", "3", "--memory", std::to_string(least + 20) + "MiB",
                                 "--checkpoint", folder.path()}));
  const auto resumed = penstock_json(with(kResidual, {"--resume", folder.path()}));
  EXPECT_EQ(resumed["weights_sha256"], whole["weights_sha256"]);
}

TEST(Budget, RefusesWithWhatWouldWork) {
  const Outcome outcome = penstock(with(kResidual, {"--memory", "32MiB"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  EXPECT_NE(outcome.err.find("32.0 MiB"), std::string::npos) << outcome.err;

  const auto large = with(kResidual, {"--batch", "400"});
  const std::int64_t less = smallest_mib(large, "window") - 20;
  const Outcome smaller = penstock(with(large, {"--memory", std::to_string(less) + "MiB"}));
  EXPECT_EQ(smaller.exit_code, 2);
  std::smatch match;
  ASSERT_TRUE(std::regex_search(smaller.err, match, std::regex("--batch (\\d+) or less"))) << smaller.err;
  const auto fits = penstock_json({"train", "resnet20", "--image-size", "32", "--batch", match[1], "--steps",
                                   "2", "--memory", std::to_string(less) + "MiB"});
  EXPECT_LE(fits["peak_rss_bytes"], fits["budget_bytes"]);
}

TEST(Budget, KeepsALimitOfTheSwapSpaceOrSaysWhatWouldDo) {
  const auto whole = penstock_json(with(kResidual, {"--policy", "keep"}));
  const std::int64_t most = whole["in_memory_bytes"].get<std::int64_t>() / kMiB;
  const std::int64_t least = smallest_mib(kResidual, "window");
  const auto half = with(kResidual, {"--memory", std::to_string((least + most) / 2) + "MiB"});
  const auto free = penstock_json(half);
  const std::int64_t taken = free["swap_file_bytes"].get<std::int64_t>();
  ASSERT_GT(taken, 0);
  const auto part = penstock_json(with(half, {"--swap-space", std::to_string(taken / 4)}));
  EXPECT_LE(part["swap_file_bytes"].get<std::int64_t>(), taken / 4);
  EXPECT_EQ(part["weights_sha256"], whole["weights_sha256"]);
  EXPECT_LE(part["peak_rss_bytes"], part["budget_bytes"]);
  const auto tight = with(kResidual, {"--memory", std::to_string(least + 8) + "MiB", "--policy", "window"});
  const Outcome outcome = penstock(with(tight, {"--swap-space", "1MiB"}));
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  std::smatch match;
  ASSERT_TRUE(std::regex_search(outcome.err, match, std::regex("or --swap-space (\\d+MiB)"))) << outcome.err;
  penstock_json(with(tight, {"--swap-space", match[1]}));
}

TEST(Budget, WithoutSwapSpaceNamesWhatComputingAgainDoesWith) {
  const std::vector<std::string> run{"train",   "resnet20", "--image-size", "24", "--batch",      "16",
                                     "--steps", "1",        "--threads",    "1",  "--swap-space", "0MiB"};
  const Outcome refused = penstock(with(run, {"--memory", "8MiB"}));
  EXPECT_EQ(refused.exit_code, 2);
  std::smatch match;
  ASSERT_TRUE(std::regex_search(refused.err, match, std::regex("--memory (\\d+)MiB"))) << refused.err;
  const int named = std::stoi(match[1]);
  penstock_json(with(run, {"--memory", std::to_string(named) + "MiB"}));
  // What differs from run to run, and a little: much less must not train.
  EXPECT_EQ(penstock(with(run, {"--memory", std::to_string(named - 9) + "MiB"})).exit_code, 2);
}

TEST(Budget, RefusesSwapFoldersThatWillNotDo) {
  const TemporaryFolder folder;
  for (const std::string& dir : {folder.file("none"), std::string("/proc")}) {
    const Outcome outcome =
        penstock(with(kResidual, {"--policy", "window", "--memory", "300MiB", "--swap-dir", dir}));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(dir), std::string::npos) << outcome.err;
  }
  penstock_json(with(kResidual, {"--policy", "window", "--memory", "300MiB", "--swap-dir", folder.path()}));
  EXPECT_TRUE(folder.list().empty());
}

}  // namespace
}  // namespace penstock::testing
