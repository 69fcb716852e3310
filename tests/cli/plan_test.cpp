#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/bytes.h"
#include "cli/penstock.h"

namespace penstock::testing {
namespace {

using ::testing::HasSubstr;

/// `plan` and `train` on a small network, with a cache directory of their own.
class PlanCommand : public ::testing::Test {
 protected:
  PlanCommand() { ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }
  ~PlanCommand() override { ::unsetenv("XDG_CACHE_HOME"); }

  std::vector<std::string> arguments(const char* command, const std::vector<std::string>& more) const {
    std::vector<std::string> all{command,     "resnet20", "--image-size", "24",  "--batch", "48",
                                 "--threads", "1",        "--pool",       pool()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  nlohmann::json plan(const std::vector<std::string>& more) const {
    return penstock_json(arguments("plan", more));
  }
  nlohmann::json train(const std::vector<std::string>& more) const {
    return penstock_json(arguments("train", more));
  }
  static std::string mib(std::int64_t bytes) { return std::to_string(bytes / kMiB) + "MiB"; }

  virtual std::string pool() const { return "virtual"; }

  TemporaryFolder folder_;
};

/// What must hold in both pools.
class PlanCommandInPool : public PlanCommand, public ::testing::WithParamInterface<const char*> {
 protected:
  std::string pool() const override { return GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Both, PlanCommandInPool, ::testing::Values("virtual", "packed"));

TEST_F(PlanCommand, TellsWhatBudgetsGive) {
  const auto result = plan({});
  EXPECT_EQ(result["profile_source"], "estimate");
  const auto& budgets = result["budgets"];
  ASSERT_GE(budgets.size(), 3U);
  EXPECT_EQ(budgets.front()["budget_bytes"], result["smallest_bytes"]);
  EXPECT_EQ(budgets.back()["policy"], "keep");
  EXPECT_EQ(budgets.back()["swapped_out_bytes"], 0);
  // Moving pages costs something even where everything stays; where nothing moves, nothing is lost.
  EXPECT_GT(budgets.back()["in_memory_share"].get<double>(), 0.8);
  EXPECT_NEAR(plan({"--pool", "packed"})["budgets"].back()["in_memory_share"].get<double>(), 1, 1e-6);
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    const auto& row = budgets[i];
    EXPECT_TRUE(row["feasible"]);
    EXPECT_LE(row["planned_peak_bytes"].get<std::int64_t>() + row["overhead_bytes"].get<std::int64_t>(),
              row["budget_bytes"]);
    EXPECT_LE(row["in_memory_share"], 1 + 1e-6);
    if (i > 0) {
      EXPECT_GT(row["budget_bytes"], budgets[i - 1]["budget_bytes"]);
      EXPECT_LE(row["swapped_out_bytes"], budgets[i - 1]["swapped_out_bytes"]);
    }
  }
  EXPECT_GT(budgets.front()["written_bytes_per_day"], 0);
}

TEST_P(PlanCommandInPool, AgreesWithTraining) {
  const auto whole = plan({});
  const std::int64_t smallest = whole["smallest_bytes"], most = whole["in_memory_bytes"];
  // The smallest budget that is named works, and what lies well below it does not.
  EXPECT_EQ(train({"--steps", "1", "--memory", mib(smallest)})["policy"], "auto");
  const std::string below = mib(smallest / 2);
  EXPECT_EQ(penstock(arguments("plan", {"--memory", below})).exit_code, 2);
  EXPECT_EQ(penstock(arguments("train", {"--steps", "1", "--memory", below})).exit_code, 2);

  const std::string budget = mib((smallest + most) / 2), file = folder_.file("plan.json");
  const auto planned = plan({"--memory", budget, "--out", file})["budgets"][0];
  const auto by_plan = train({"--steps", "3", "--plan", file});
  EXPECT_EQ(by_plan["planned_peak_bytes"], planned["planned_peak_bytes"]);
  EXPECT_EQ(by_plan["pool_peak_bytes"], planned["planned_peak_bytes"]);
  EXPECT_EQ(by_plan["swapped_out_bytes"], planned["swapped_out_bytes"]);
  EXPECT_EQ(by_plan["swapped_in_bytes"], planned["swapped_in_bytes"]);
  EXPECT_EQ(by_plan["swap_file_bytes"], planned["swap_file_bytes"]);
  EXPECT_EQ(by_plan["budget_bytes"], planned["budget_bytes"]);
  EXPECT_LE(by_plan["peak_rss_bytes"], by_plan["budget_bytes"]);
  EXPECT_EQ(by_plan["weights_sha256"], train({"--steps", "3"})["weights_sha256"]);
}

TEST_P(PlanCommandInPool, APlanFileHoldsTheEvaluationToo) {
  const std::vector<std::string> data{"--evaluate", "--data", "synthetic"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), data.begin(), data.end());
    return more;
  };
  const auto whole = plan(with({}));
  const std::string file = folder_.file("plan.json");
  for (const double share : {0.0, 0.3, 0.6}) {
    const std::int64_t smallest = whole["smallest_bytes"], most = whole["in_memory_bytes"];
    const auto budget = static_cast<std::int64_t>(static_cast<double>(smallest) * (1 - share) +
                                                  static_cast<double>(most) * share);
    const auto planned = plan(with({"--memory", mib(budget), "--out", file}))["budgets"][0];
    const auto trained = train(with({"--steps", "2", "--plan", file}));
    EXPECT_EQ(trained["planned_peak_bytes"], planned["planned_peak_bytes"]);
    EXPECT_EQ(trained["pool_peak_bytes"], planned["planned_peak_bytes"]);
  }
}

TEST_F(PlanCommand, UsesTheProfileThatTrainingMeasured) {
  const auto whole = plan({});
  const std::int64_t smallest = whole["smallest_bytes"], most = whole["in_memory_bytes"];
  const std::int64_t budget = (smallest + most) / 2;
  train({"--steps", "1", "--memory", mib(budget)});
  const auto planned = plan({"--memory", mib(budget)});
  EXPECT_EQ(planned["profile_source"], "cached");
  EXPECT_EQ(planned["budgets"][0]["policy"], "auto");
}

TEST_F(PlanCommand, FindsTheLargestBatch) {
  // So large that what the process takes beside the pool, which differs from one run to the next, is little.
  const std::string budget = mib(plan({"--batch", "1024", "--slice", "0"})["smallest_bytes"]);
  const auto result = plan({"--memory", budget, "--max-batch", "--batch", "4", "--slice", "0"});
  const std::int64_t batch = result["largest_batch"];
  EXPECT_GT(batch, 512);
  EXPECT_EQ(
      penstock(arguments("plan", {"--memory", budget, "--batch", std::to_string(batch * 2), "--slice", "0"}))
          .exit_code,
      2);
  // In slices, what a batch needs hardly grows with it.
  const auto sliced = plan({"--memory", budget, "--max-batch", "--batch", "4", "--slice", "64"});
  EXPECT_TRUE(sliced["largest_batch"] == "any" || sliced["largest_batch"] > batch) << sliced["largest_batch"];
}

TEST_F(PlanCommand, TheLargestBatchKnowsTheSpaceToSwap) {
  const std::int64_t smallest = plan({"--batch", "128", "--slice", "8"})["smallest_bytes"];
  const auto with = [&](std::vector<std::string> more) {
    const std::vector<std::string> limits{
        "--memory", mib(smallest + 12 * kMiB), "--slice", "8", "--swap-space", "200MiB"};
    more.insert(more.end(), limits.begin(), limits.end());
    return more;
  };
  const auto result = plan(with({"--max-batch", "--batch", "128"}));
  const std::int64_t batch = result["largest_batch"];
  EXPECT_GE(batch, 256);
  EXPECT_EQ(plan(with({"--batch", std::to_string(batch)}))["budgets"][0]["feasible"], true) << batch;
  const auto twice = arguments("plan", with({"--batch", std::to_string(2 * batch), "--policy", "window"}));
  EXPECT_EQ(penstock(twice).exit_code, 2) << batch;
  const Outcome told = penstock(arguments("plan", with({"--max-batch", "--batch", "128"})));
  EXPECT_THAT(told.out, HasSubstr("and 200 MiB of swap space is "));
}

TEST_F(PlanCommand, ExplainsTheSmallestBudget) {
  const Outcome outcome = penstock(arguments("plan", {"--explain", "smallest"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("smallest budget "));
  EXPECT_THAT(outcome.out, HasSubstr("beside tensors: conversion "));
  EXPECT_THAT(outcome.out, HasSubstr("the op that decides: "));
  EXPECT_THAT(outcome.out, HasSubstr("  makes "));
}

TEST_P(PlanCommandInPool, ExplainsATensorAndAnOp) {
  const std::string budget = mib(plan({})["smallest_bytes"].get<std::int64_t>() + 4 * kMiB);
  const Outcome tensor = penstock(arguments("plan", {"--memory", budget, "--explain", "layer1.0.conv1"}));
  EXPECT_EQ(tensor.exit_code, 0) << tensor.err;
  EXPECT_THAT(tensor.out, HasSubstr("layer1.0.conv1: activation, "));
  EXPECT_THAT(tensor.out, HasSubstr("policy auto: "));
  EXPECT_THAT(tensor.out, HasSubstr("to compute it again: "));
  const Outcome state =
      penstock(arguments("plan", {"--memory", budget, "--explain", "layer1.0.conv1.weight.update"}));
  EXPECT_THAT(state.out, HasSubstr("layer1.0.conv1.weight: parameter, "));
  EXPECT_THAT(state.out, HasSubstr("not possible, it is state"));
  const Outcome none = penstock(arguments("plan", {"--memory", budget, "--explain", "0.conv1.wei"}));
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("layer1.0.conv1.weight"));
}

TEST_F(PlanCommand, RefusesWhatIsNoPlan) {
  const std::string file = folder_.file("plan.json");
  const auto outcome = [&](const std::string& text) {
    write_file(file, text);
    const Outcome result = penstock(arguments("train", {"--steps", "1", "--plan", file}));
    EXPECT_EQ(result.exit_code, 2) << result.out;
    return result.err;
  };
  EXPECT_THAT(outcome("no json"), HasSubstr(file));
  EXPECT_THAT(outcome("{}"), HasSubstr("not a plan"));
  plan({"--memory", mib(plan({})["smallest_bytes"]), "--out", file});
  const nlohmann::json good = nlohmann::json::parse(read_file(file));
  nlohmann::json wrong = good;
  wrong["training"]["instructions"].erase(5);
  EXPECT_THAT(outcome(wrong.dump()), HasSubstr("does not hold"));
  wrong = good;
  wrong["training"]["ops"] = 3;
  EXPECT_THAT(outcome(wrong.dump()), HasSubstr("another network"));
  wrong = good;
  wrong["pool_bytes"] = 4096;
  EXPECT_THAT(outcome(wrong.dump()), HasSubstr("contradict"));
  wrong = good;
  wrong["budget_bytes"] = 40 * kMiB;
  EXPECT_THAT(outcome(wrong.dump()), HasSubstr("exceed"));
}

}  // namespace
}  // namespace penstock::testing
