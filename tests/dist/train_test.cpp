#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "base/bytes.h"
#include "dist/mpirun.h"

#ifdef PENSTOCK_MPIEXEC

namespace penstock::testing {
namespace {

const Arguments kPlain{"train", "lenet", "--steps", "20", "--lr", "0.05"};
const Arguments kDropout{"train", "alexnet", "--image-size", "64",      "--classes",
                         "10",    "--lr",    "0.01",         "--steps", "2"};
const Arguments kResidual{"train", "resnet20", "--image-size", "32", "--batch", "48", "--steps", "3"};

void expect_same_losses(const nlohmann::json& a, const nlohmann::json& b) {
  const auto one = a["loss"].get<std::vector<double>>();
  const auto other = b["loss"].get<std::vector<double>>();
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_NEAR(one[i], other[i], 1e-5 * std::abs(one[i])) << "step " << i;
  }
}

/// The budget that the refusal of one that is too small tells to name.
std::int64_t smallest_bytes(int ranks, const Arguments& arguments) {
  const Outcome outcome = run_ranks(ranks, arguments + Arguments{"--memory", "32MiB"});
  std::smatch match;
  if (!std::regex_search(outcome.err, match, std::regex("--memory (\\d+)MiB"))) {
    throw std::runtime_error("no budget is named: " + outcome.err);
  }
  return std::stoll(match[1]) * kMiB;
}

TEST(RanksTrain, TheNumberOfRanksDoesNotChangeWhatIsLearned) {
  const auto one = ranks_json(1, kPlain + Arguments{"--batch", "24"});
  EXPECT_LT(one["loss"].back(), one["loss"].front());
  for (const int ranks : {2, 3, 4}) {
    const auto many = ranks_json(ranks, kPlain + Arguments{"--batch", std::to_string(24 / ranks)});
    EXPECT_EQ(many["ranks"], ranks);
    EXPECT_EQ(many["effective_batch"], 24);
    EXPECT_EQ(many["rank_peak_rss_bytes"].size(), static_cast<std::size_t>(ranks));
    EXPECT_GT(many["network_bytes"], 0);
    expect_same_losses(one, many);
  }
}

TEST(RanksTrain, DropoutGoesByTheSamplesPlaceInTheWholeBatch) {
  const auto one = ranks_json(1, kDropout + Arguments{"--batch", "4"});
  const auto many = ranks_json(2, kDropout + Arguments{"--batch", "2"});
  expect_same_losses(one, many);
}

TEST(RanksTrain, SameBitsUnderABudgetOnEveryRank) {
  const auto whole = ranks_json(2, kResidual);
  EXPECT_EQ(whole["swapped_out_bytes"], 0);
  const std::int64_t most = whole["in_memory_bytes"];
  for (const Arguments& how :
       std::vector<Arguments>{{},
                              {"--policy", "window", "--pool", "packed"},
                              {"--policy", "window", "--in-flight", "0", "--bucket", "64KiB"}}) {
    const std::int64_t budget = (smallest_bytes(2, kResidual + how) + most) / 2;
    const auto part = ranks_json(2, kResidual + Arguments{"--memory", std::to_string(budget)} + how);
    EXPECT_EQ(part["weights_sha256"], whole["weights_sha256"]);
    EXPECT_EQ(part["loss"], whole["loss"]);
    EXPECT_GT(part["swapped_out_bytes"], 0);
    for (const auto& peak : part["rank_peak_rss_bytes"]) EXPECT_LE(peak, budget);
  }
}

TEST(RanksTrain, AShardedOptimizerGivesTheSameBitsFromLessMemory) {
  const Arguments arguments{"train",   "resnet20", "--image-size", "32",  "--batch", "4",
                            "--steps", "3",        "--optimizer",  "adam"};
  const auto whole = ranks_json(3, arguments);
  const auto sharded = ranks_json(3, arguments + Arguments{"--shard-optimizer"});
  EXPECT_EQ(sharded["weights_sha256"], whole["weights_sha256"]);
  EXPECT_EQ(sharded["loss"], whole["loss"]);
  // 270,000 parameters with two moments each, of which two thirds are elsewhere.
  EXPECT_LT(sharded["pool_bytes"], whole["pool_bytes"].get<std::int64_t>() - kMiB);

  const auto tight =
      ranks_json(3, arguments + Arguments{"--shard-optimizer", "--policy", "window", "--bucket", "256KiB"});
  EXPECT_EQ(tight["weights_sha256"], whole["weights_sha256"]);
}

TEST(RanksTrain, GradientsAreClippedByTheNormOfTheirMean) {
  const Arguments clipped = kPlain + Arguments{"--clip", "0.1", "--momentum", "0.9"};
  const auto one = ranks_json(1, clipped + Arguments{"--batch", "24", "--accumulate", "2"});
  EXPECT_GT(one["gradient_norm"].front(), 0.1);
  for (const Arguments& how : std::vector<Arguments>{{}, {"--shard-optimizer"}}) {
    const auto many = ranks_json(3, clipped + Arguments{"--batch", "8"} + how);
    expect_same_losses(one, many);
    const auto norm = many["gradient_norm"].get<std::vector<double>>();
    for (std::size_t i = 0; i < norm.size(); ++i) {
      const double expected = one["gradient_norm"][i];
      EXPECT_NEAR(norm[i], expected, 1e-4 * expected) << i;
    }
  }
}

TEST(RanksTrain, ACheckpointIsResumedByAnotherNumberOfRanks) {
  const TemporaryFolder folder;
  const Arguments arguments{"train", "lenet", "--lr", "0.05", "--optimizer", "adam"};
  const auto whole = ranks_json(1, arguments + Arguments{"--batch", "12", "--steps", "8"});
  ranks_json(3, arguments + Arguments{"--batch", "4", "--steps", "4", "--shard-optimizer", "--checkpoint",
                                      folder.path()});
  for (const int ranks : {1, 2}) {
    const auto rest = ranks_json(ranks, arguments + Arguments{"--batch", std::to_string(12 / ranks),
                                                              "--steps", "8", "--resume", folder.path()});
    ASSERT_EQ(rest["loss"].size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
      const double expected = whole["loss"][i + 4];
      EXPECT_NEAR(rest["loss"][i], expected, 1e-5 * expected);
    }
  }
  // Each rank sees its own part of what is sharded alone, and they start from the same all the same.
  const auto sharded = ranks_json(3, arguments + Arguments{"--batch", "4", "--steps", "8",
                                                           "--shard-optimizer", "--resume", folder.path()});
  EXPECT_EQ(sharded["loss"].size(), 4U);
  const Outcome other =
      run_ranks(2, arguments + Arguments{"--batch", "12", "--steps", "8", "--resume", folder.path()});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("a batch of 12 in all"), std::string::npos) << other.err;
}

TEST(RanksTrain, RanksShareTheTestSplit) {
  const TemporaryFolder folder;
  const Arguments sizes{"--image-size", "32", "--batch", "25"};
  const auto trained = ranks_json(
      2, Arguments{"train", "resnet20", "--steps", "4", "--evaluate", "--save", folder.file("w")} + sizes);
  const auto alone = ranks_json(1, Arguments{"eval", "resnet20", "--init", folder.file("w")} + sizes);
  EXPECT_EQ(trained["test_images"], alone["test_images"]);
  EXPECT_DOUBLE_EQ(trained["accuracy"], alone["accuracy"]);
}

}  // namespace
}  // namespace penstock::testing

#endif
