#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "dist/mpirun.h"

#ifdef PENSTOCK_MPIEXEC

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

/// Processes, mpirun not among them, that have `word` among their arguments.
std::vector<pid_t> processes_with(const std::string& word) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    const std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (line.starts_with(PENSTOCK_BINARY_DIR "/penstock") && line.find(word) != std::string::npos) {
      found.push_back(std::stoi(name));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

int lines_of_ours(const std::string& text) {
  int lines = 0;
  for (std::size_t at = 0; (at = text.find("penstock: ", at)) != std::string::npos; ++at) {
    if (at == 0 || text[at - 1] == '\n') ++lines;
  }
  return lines;
}

TEST(RanksFail, WhatAllFindWrongIsSaidOnce) {
  for (const Arguments& wrong :
       std::vector<Arguments>{{"train", "lenet", "--steps", "2", "--memory", "10MiB"},
                              {"train", "lenet"},
                              {"train", "lenet", "--stepz", "1"}}) {
    const Outcome outcome = run_ranks(3, wrong);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_EQ(lines_of_ours(outcome.err), 1) << outcome.err;
    EXPECT_EQ(outcome.err.find("rank 0: "), std::string::npos) << outcome.err;
  }
}

TEST(RanksFail, WhatOneFindsWrongAtTheStartNamesTheRank) {
  const Arguments good{"train", "lenet", "--steps", "2", "--batch", "4"};
  const Outcome outcome = run_two(good, good + Arguments{"--swap-dir", "/nowhere"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(lines_of_ours(outcome.err), 1) << outcome.err;
  EXPECT_NE(outcome.err.find("penstock: rank 1: swap folder '/nowhere'"), std::string::npos) << outcome.err;
}

TEST(RanksFail, RanksThatStartFromSomethingElseAreRefused) {
  const TemporaryFolder folder;
  const std::string mine = folder.file("a.safetensors"), other = folder.file("b.safetensors");
  const Arguments good{"train", "lenet", "--steps", "2", "--batch", "4"};
  for (const auto& [seed, file] : {std::pair{"1", mine}, std::pair{"2", other}}) {
    const Outcome outcome = run_ranks(1, good + Arguments{"--seed", seed, "--save", file});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  const struct {
    Arguments first, second;
    std::string message;
  } cases[] = {
      {{"--seed", "3"}, {"--seed", "4"}, "another seed than rank 0: 4 instead of 3"},
      {{"--steps", "3"}, {"--steps", "5"}, "another number of steps than rank 0: 5 instead of 3"},
      {{"--optimizer", "sgd"}, {"--optimizer", "adam"}, "another optimizer than rank 0: adam"},
      {{"--init", mine}, {"--init", other}, "another set of weights, by its SHA-256 than rank 0: "},
  };
  const Arguments common{"train", "lenet", "--batch", "4"};
  for (const auto& each : cases) {
    const Arguments steps = each.first[0] == "--steps" ? Arguments{} : Arguments{"--steps", "2"};
    const Outcome outcome = run_two(common + steps + each.first, common + steps + each.second);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_EQ(lines_of_ours(outcome.err), 1) << outcome.err;
    EXPECT_NE(outcome.err.find("penstock: rank 1 starts from " + each.message), std::string::npos)
        << outcome.err;
  }
}

TEST(RanksFail, TheLauncherOfAnotherMpiIsRefused) {
  // What MPICH's launcher says; Open MPI does not see the other rank.
  const Outcome outcome = run_program({"env", "PMI_RANK=0", "PMI_SIZE=2", PENSTOCK_BINARY_DIR "/penstock",
                                       "train", "lenet", "--steps", "1", "--batch", "4"});
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("the launcher started 2 ranks, but they find 1"), std::string::npos)
      << outcome.err;
}

TEST(RanksFail, WhatFailsOnOneInMidRunEndsAll) {
  // Rank 1 finds out when it loads its first batch; rank 0, which has as many images, waits for its gradients
  // then.
  constexpr unsigned char kPixel[] = {
      137, 80, 78, 71, 13, 10, 26,  10,  0,  0,   0,  13, 73, 72, 68, 82, 0,  0,  0,   1,   0,  0,   0,
      1,   8,  2,  0,  0,  0,  144, 119, 83, 222, 0,  0,  0,  12, 73, 68, 65, 84, 120, 156, 99, 104, 112,
      80,  0,  0,  2,  36, 0,  225, 171, 89, 98,  39, 0,  0,  0,  0,  73, 69, 78, 68,  174, 66, 96,  130};
  const TemporaryFolder good, bad;
  for (const char* kind : {"a", "b"}) {
    fs::create_directory(good.file(kind));
    fs::create_directory(bad.file(kind));
    for (int i = 0; i < 8; ++i) {
      const std::string name = std::string(kind) + "/" + std::to_string(i) + ".png";
      std::ofstream(good.file(name), std::ios::binary)
          .write(reinterpret_cast<const char*>(kPixel), sizeof(kPixel));
      std::ofstream(bad.file(name)) << "no image";
    }
  }
  const Arguments sizes{"train", "resnet20", "--image-size", "32", "--batch", "2", "--steps", "3", "--data"};
  const Outcome outcome =
      run_two(sizes + Arguments{"images:" + good.path()}, sizes + Arguments{"images:" + bad.path()});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(lines_of_ours(outcome.err), 1) << outcome.err;
  EXPECT_NE(outcome.err.find("penstock: rank 1: "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("cannot be used"), std::string::npos) << outcome.err;
}

TEST(RanksFail, AKilledRankEndsAllAndTheCheckpointGoesOnExactly) {
  const TemporaryFolder folder;
  fs::create_directory(folder.file("swap"));
  const std::string checkpoint = folder.file("checkpoint");
  const Arguments arguments{"train",    "resnet20", "--image-size", "16",         "--batch",          "16",
                            "--policy", "window",   "--quiet",      "--swap-dir", folder.file("swap")};
  Outcome outcome;
  std::thread run([&] {
    outcome = run_ranks(2, arguments + Arguments{"--steps", "1000000", "--checkpoint", checkpoint,
                                                 "--checkpoint-every", "5"});
  });
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::vector<pid_t> ranks;
  while (std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ranks = processes_with(checkpoint);
    if (ranks.size() == 2 && fs::exists(checkpoint + "/checkpoint.safetensors")) break;
  }
  if (!ranks.empty()) kill(ranks.back(), SIGKILL);
  run.join();
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find("signal 9"), std::string::npos) << outcome.err;
  EXPECT_TRUE(processes_with(checkpoint).empty());
  EXPECT_TRUE(fs::is_empty(folder.file("swap")));

  const std::string steps = "60";
  const auto rest = ranks_json(2, arguments + Arguments{"--steps", steps, "--resume", checkpoint});
  const auto whole = ranks_json(2, arguments + Arguments{"--steps", steps});
  ASSERT_LT(rest["loss"].size(), whole["loss"].size());
  EXPECT_EQ(rest["weights_sha256"], whole["weights_sha256"]);
}

}  // namespace
}  // namespace penstock::testing

#endif
