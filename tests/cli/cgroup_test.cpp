#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "cli/penstock.h"

namespace penstock::testing {
namespace {

/// A memory control group with a limit and no swap, removed at the end. Needs root, or a group that was
/// handed to this user.
class MemoryGroup {
 public:
  explicit MemoryGroup(std::int64_t limit_bytes) {
    const std::string name = "penstock-test-" + std::to_string(getpid());
    const std::filesystem::path v1 = "/sys/fs/cgroup/memory";
    const std::filesystem::path v2 = "/sys/fs/cgroup";
    std::error_code ignored;
    if (std::filesystem::exists(v1 / "memory.limit_in_bytes") &&
        std::filesystem::create_directory(v1 / name, ignored)) {
      path_ = v1 / name;
      usable_ = put("memory.limit_in_bytes", limit_bytes) && put("memory.swappiness", 0);
    } else if (std::filesystem::exists(v2 / "cgroup.controllers") &&
               std::filesystem::create_directory(v2 / name, ignored)) {
      path_ = v2 / name;
      usable_ = put("memory.max", limit_bytes) && put("memory.swap.max", 0);
    }
  }
  ~MemoryGroup() {
    if (!path_.empty()) rmdir(path_.c_str());
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  bool usable() const { return usable_; }

  /// Runs the program inside.
  Outcome run(const std::string& arguments) const {
    return script("exec " PENSTOCK_BINARY_DIR "/penstock " + arguments);
  }
  /// Runs a shell's script inside.
  Outcome script(const std::string& text) const {
    return run_program({"sh", "-c", "echo $$ > " + (path_ / "cgroup.procs").string() + "\n" + text});
  }

 private:
  bool put(const char* file, std::int64_t value) const {
    std::ofstream stream(path_ / file);
    stream << value << std::flush;
    return stream.good();
  }

  std::filesystem::path path_;
  bool usable_ = false;
};

TEST(Cgroup, TrainingSurvivesInAGroupOfTheBudgetsSize) {
  struct Case {
    const char* arguments;
    std::int64_t budget_mib;
  };
  // Each needs a multiple of its budget in memory.
  for (const Case& test :
       {Case{"train resnet20 --image-size 32 --batch 256 --steps 3 --evaluate", 160},
        Case{"train unet --image-size 64 --batch 4 --steps 2", 270},
        Case{"train alexnet --image-size 64 --classes 10 --batch 16 --steps 2 --lr 0.01", 400}}) {
    const TemporaryFolder folder;
    const MemoryGroup group(test.budget_mib * kMiB);
    if (!group.usable())
      GTEST_SKIP() << "no memory control group can be made here; VmHWM is checked by Budget.*";
    const Outcome outcome =
        group.run(std::string(test.arguments) + " --quiet --checkpoint " + folder.file("ckpt") + " --json " +
                  folder.file("r.json") + " --memory " + std::to_string(test.budget_mib) + "MiB");
    ASSERT_EQ(outcome.exit_code, 0) << test.arguments << ": " << outcome.err;
    const auto json = nlohmann::json::parse(read_file(folder.file("r.json")));
    EXPECT_LE(json["peak_rss_bytes"], test.budget_mib * kMiB);
    EXPECT_GT(json["in_memory_bytes"], test.budget_mib * kMiB) << "the budget is no hardship";
    EXPECT_GT(json["swapped_in_bytes"], 0);
  }
}

/// A text model whose state alone is a multiple of the group: killed between two checkpoints, it goes on to
/// the same bits.
TEST(Cgroup, StateBeyondMemoryResumesAfterAKill) {
  const TemporaryFolder folder;
  const std::string model = folder.file("config.json");
  std::ofstream(model) << R"({"model_type": "gpt2", "n_layer": 15, "n_head": 4, "n_embd": 384,
    "vocab_size": 512, "n_positions": 64})";
  const std::string train =
      " train " + model + " --batch 2 --sequence 64 --optimizer adamw --lr 0.001 --steps 6";
  const auto whole = penstock_json({"train", model, "--batch", "2", "--sequence", "64", "--optimizer",
                                    "adamw", "--lr", "0.001", "--steps", "6"});
  constexpr std::int64_t kBudgetMib = 112;
  EXPECT_GT(whole["in_memory_bytes"], 3 * kBudgetMib * kMiB) << "the budget is no hardship";
  const MemoryGroup group(kBudgetMib * kMiB);
  if (!group.usable()) GTEST_SKIP() << "no memory control group can be made here; Budget* tries the same";
  const std::string budget = " --quiet --memory " + std::to_string(kBudgetMib) + "MiB ";
  const std::string kept = folder.file("kept");
  const Outcome killed = group.script(PENSTOCK_BINARY_DIR "/penstock" + train + budget +
                                      "--checkpoint-every 2 --checkpoint " + kept + " &\nuntil [ -e " + kept +
                                      "/checkpoint.safetensors ]; do sleep 0.01; done\nkill -9 $!\nwait $!");
  EXPECT_EQ(killed.exit_code, 128 + SIGKILL) << killed.err;
  const Outcome resumed = group.run(train + budget + "--resume " + kept + " --json " + folder.file("r.json"));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  const auto json = nlohmann::json::parse(read_file(folder.file("r.json")));
  EXPECT_EQ(json["weights_sha256"], whole["weights_sha256"]);
  EXPECT_LT(json["loss"].size(), 6U) << "it had steps behind it";
  EXPECT_LE(json["peak_rss_bytes"], kBudgetMib * kMiB);
  EXPECT_GT(json["swapped_in_bytes"], 0);
}

}  // namespace
}  // namespace penstock::testing
