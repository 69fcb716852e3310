#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

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

/// Whether a process has all these words in its command line.
bool is_running(const std::vector<std::string>& words) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    std::string line;
    std::getline(file, line);
    if (!line.empty() && std::all_of(words.begin(), words.end(), [&](const std::string& word) {
          return line.find(word) != std::string::npos;
        }))
      return true;
  }
  return false;
}

TEST(Bench, ItsChildrenEndWithIt) {
  // Hardly another process has this number of steps.
  const std::string steps = std::to_string(900000 + getpid() % 99999);
  for (const int number : {SIGTERM, SIGKILL}) {
    const pid_t bench = fork();
    if (bench == 0) {
      const std::string program = PENSTOCK_BINARY_DIR "/penstock";
      execl(program.c_str(), "penstock", "bench", "lenet", "--batch", "4", "--threads", "1", "--budgets",
            "1GiB", "--steps", steps.c_str(), nullptr);
      _exit(127);
    }
    for (int tries = 0; tries < 3000 && !is_running({"train", steps}); ++tries) usleep(10000);
    EXPECT_TRUE(is_running({"train", steps}));
    kill(bench, number);
    int status = 0;
    waitpid(bench, &status, 0);
    for (int tries = 0; tries < 3000 && is_running({"train", steps}); ++tries) usleep(10000);
    EXPECT_FALSE(is_running({"train", steps})) << "signal " << number;
  }
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
