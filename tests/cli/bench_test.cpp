#include <gtest/gtest.h>

#include "cli/penstock.h"

namespace penstock::testing {
namespace {

TEST(BudgetBench, ComparesPoliciesAndSaysWhatCannotRun) {
  const TemporaryFolder folder;
  const Outcome outcome = penstock({"bench",        "resnet20",
                                    "--image-size", "32",
                                    "--batch",      "96",
                                    "--threads",    "1",
                                    "--budgets",    "40MiB,120MiB",
                                    "--policies",   "auto,window",
                                    "--steps",      "2",
                                    "--repeat",     "1",
                                    "--json",       folder.file("bench.json"),
                                    "--report",     folder.file("bench.html")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("cannot run: needs at least"), std::string::npos) << outcome.out;
  const auto figures = nlohmann::json::parse(read_file(folder.file("bench.json")));
  ASSERT_EQ(figures["cells"].size(), 5U);
  for (const auto& cell : figures["cells"]) {
    EXPECT_EQ(cell["feasible"], cell["budget_bytes"] != 40 << 20) << cell;
    if (cell["feasible"]) {
      EXPECT_GT(cell["images_per_second"][0], 0);
    }
  }
  EXPECT_NE(read_file(folder.file("bench.html")).find("window"), std::string::npos);
}

TEST(Bench, RefusesWhatTrainWould) {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--policies", "fastest"}, {"--budgets", "much"}, {"--optimizer", "luck"}}) {
    std::vector<std::string> arguments{"bench",   "lenet", "--budgets", "100MiB",
                                       "--steps", "2",     "--json",    folder.file("bench.json")};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    const Outcome outcome = penstock(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_NE(outcome.err.find(wrong[1]), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  EXPECT_TRUE(folder.list().empty());
}

}  // namespace
}  // namespace penstock::testing
