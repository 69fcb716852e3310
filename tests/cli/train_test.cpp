#include <gtest/gtest.h>

#include <numeric>

#include "cli/penstock.h"

namespace penstock::testing {
namespace {

const std::vector<std::string> kSmall{"train",   "resnet20", "--image-size", "16",
                                      "--batch", "8",        "--lr",         "0.05"};

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(Train, WritesTheKeysOthersRead) {
  const auto json = penstock_json(with(kSmall, {"--steps", "3", "--evaluate"}));
  EXPECT_EQ(json["model"], "resnet20");
  EXPECT_EQ(json["batch"], 8);
  EXPECT_EQ(json["steps"], 3);
  EXPECT_EQ(json["loss"].size(), 3U);
  EXPECT_EQ(json["step_seconds"].size(), 3U);
  EXPECT_GT(json["images_per_second"], 0.0);
  EXPECT_GT(json["peak_rss_bytes"], 1000000);
  EXPECT_EQ(json["weights_sha256"].get<std::string>().size(), 64U);
  EXPECT_GE(json["accuracy"], 0.0);
  EXPECT_LE(json["accuracy"], 1.0);
  for (const char* key :
       {"threads", "seed", "policy", "budget_bytes", "pool_bytes", "overhead_bytes", "planned_peak_bytes"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["planned_peak_bytes"], json["pool_peak_bytes"]);
}

TEST(Train, OneSeedGivesOneResultAnotherAnother) {
  const auto first = penstock_json(with(kSmall, {"--steps", "3", "--seed", "5"}));
  const auto again = penstock_json(with(kSmall, {"--steps", "3", "--seed", "5"}));
  const auto other = penstock_json(with(kSmall, {"--steps", "3", "--seed", "6"}));
  EXPECT_EQ(first["weights_sha256"], again["weights_sha256"]);
  EXPECT_EQ(first["loss"], again["loss"]);
  EXPECT_NE(first["weights_sha256"], other["weights_sha256"]);
}

TEST(Train, LossFallsOnLearnableData) {
  const auto json = penstock_json(with(kSmall, {"--steps", "60", "--classes", "4", "--lr", "0.01"}));
  const auto loss = json["loss"].get<std::vector<double>>();
  const double last_five = std::accumulate(loss.end() - 5, loss.end(), 0.0) / 5;
  EXPECT_LT(last_five, 0.6 * loss.front());
}

TEST(Train, ResumesBitForBit) {
  for (const char* optimizer : {"sgd", "adam"}) {
    const TemporaryFolder folder;
    const auto run =
        with(kSmall, {"--optimizer", optimizer, "--lr", "0.001", "--schedule", "cosine,warmup:2"});
    const auto whole = penstock_json(with(run, {"--steps", "6"}));
    // The schedule runs over all six steps, so the interrupted run must be told of them as well.
    const auto once = penstock_json(
        with(run, {"--steps", "6", "--checkpoint", folder.file("whole"), "--checkpoint-every", "4"}));
    EXPECT_EQ(once["weights_sha256"], whole["weights_sha256"]);
    penstock_json(with(run, {"--steps", "4", "--schedule", "constant", "--checkpoint", folder.file("half")}));
    const auto constant = penstock_json(with(run, {"--steps", "6", "--schedule", "constant"}));
    const auto resumed =
        penstock_json(with(run, {"--steps", "6", "--schedule", "constant", "--resume", folder.file("half")}));
    EXPECT_EQ(resumed["weights_sha256"], constant["weights_sha256"]) << optimizer;
    EXPECT_EQ(resumed["loss"].size(), 2U);
    EXPECT_EQ(resumed["loss"][1], constant["loss"][5]);
  }
}

TEST(Train, SavedWeightsEvaluateTheSame) {
  const TemporaryFolder folder;
  const auto trained =
      penstock_json(with(kSmall, {"--steps", "5", "--evaluate", "--save", folder.file("w.safetensors")}));
  const auto evaluated = penstock_json(
      {"eval", "resnet20", "--image-size", "16", "--batch", "8", "--init", folder.file("w.safetensors")});
  EXPECT_EQ(trained["accuracy"], evaluated["accuracy"]);
}

TEST(Train, ShowsProgressInAPipeAndNothingWhenQuiet) {
  const Outcome loud = penstock(with(kSmall, {"--steps", "2"}));
  EXPECT_EQ(loud.exit_code, 0);
  EXPECT_NE(loud.out.find("step 2/2"), std::string::npos) << loud.out;
  EXPECT_EQ(loud.out.find('\r'), std::string::npos);
  const Outcome quiet = penstock(with(kSmall, {"--steps", "2", "--quiet"}));
  EXPECT_EQ(quiet.out + quiet.err, "");
}

}  // namespace
}  // namespace penstock::testing
