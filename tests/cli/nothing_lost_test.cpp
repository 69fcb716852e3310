#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/refused.h"
#include "data/checkpoint_file.h"

// What a run must not lose, whatever its files, its terminal and its signals do.
namespace penstock::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

Words lenet(int steps, const Words& more = {}) {
  Words words{"train", "lenet", "--batch", "4", "--lr", "0.01", "--steps", std::to_string(steps)};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Runs a shell's script in which $P is the program and $D the folder.
Outcome script(const TemporaryFolder& folder, const std::string& text) {
  return run_program(
      {"/bin/sh", "-c", "P=" PENSTOCK_BINARY_DIR "/penstock\nD='" + folder.path() + "'\n" + text});
}

std::string whole_run(int steps) {
  return penstock_json(lenet(steps))["weights_sha256"];
}

TEST(NothingLost, AFolderCalledCheckpointServesAgainAndAgain) {
  const TemporaryFolder folder;
  const std::string dir = folder.file("checkpoint");
  for (const int steps : {1, 2}) {
    EXPECT_EQ(penstock(lenet(steps, {"--checkpoint", dir, "--quiet"})).exit_code, 0);
    EXPECT_EQ(CheckpointReader::open(dir).header().step, steps);
  }
  std::ofstream(folder.file("file")) << "mine";
  expect_refused(lenet(1, {"--checkpoint", folder.file("file")}), "--checkpoint");
  expect_refused(lenet(1, {"--checkpoint", folder.file("file/below")}), "--checkpoint");
  EXPECT_EQ(read_file(folder.file("file")), "mine");
}

TEST(NothingLost, LinksStayAndPipesAreWrittenInto) {
  const TemporaryFolder folder;
  fs::create_symlink("target.json", folder.file("link.json"));
  ASSERT_EQ(penstock(lenet(1, {"--quiet", "--json", folder.file("link.json")})).exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(folder.file("link.json")));
  EXPECT_TRUE(fs::is_regular_file(folder.file("target.json")));
  const Outcome piped = script(folder,
                               "mkfifo $D/pipe; cat $D/pipe > $D/read & "
                               "$P train lenet --batch 4 --steps 1 --quiet --json $D/pipe && wait");
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_TRUE(fs::is_fifo(folder.file("pipe")));
  EXPECT_THAT(read_file(folder.file("read")), HasSubstr("weights_sha256"));
}

TEST(NothingLost, PathsNeedNotBeUtf8) {
  const TemporaryFolder folder;
  const std::string odd = folder.file("\xff\xfe odd");
  fs::create_directory(odd);
  std::ofstream text(odd + "/text.txt");
  for (int i = 0; i < 60; ++i) text << "the quick brown fox jumps over the lazy dog; ";
  text.close();
  std::ofstream(odd + "/config.json")
      << R"({"model_type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 8, "vocab_size": 256, "n_positions": 8})";
  const Words run{"train",         odd + "/config.json",
                  "--data",        "text:" + odd + "/text.txt",
                  "--sequence",    "8",
                  "--batch",       "2",
                  "--quiet",       "--checkpoint",
                  odd + "/kept",   "--json",
                  odd + "/j",      "--report",
                  odd + "/r.html", "--trace",
                  odd + "/t"};
  const auto with = [&run](const Words& more) {
    Words words = run;
    words.insert(words.end(), more.begin(), more.end());
    return penstock(words);
  };
  const Outcome first = with({"--steps", "2"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  const Outcome second = with({"--steps", "4", "--resume", odd + "/kept"});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(nlohmann::json::parse(read_file(odd + "/j"))["steps"], 4);
  EXPECT_EQ(nlohmann::json::parse(read_file(odd + "/t")).contains("traceEvents"), true);
}

TEST(NothingLost, WeightsThatDivergeLeaveTheLastGoodCheckpoint) {
  const TemporaryFolder folder;
  const std::string dir = folder.file("kept");
  ASSERT_EQ(penstock(lenet(2, {"--checkpoint", dir, "--quiet"})).exit_code, 0);
  Words wild = lenet(50, {"--checkpoint", dir, "--checkpoint-every", "1", "--resume", dir, "--save",
                          folder.file("w.safetensors"), "--quiet", "--lr", "1e20"});
  const Outcome outcome = penstock(wild);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("step "));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_FALSE(fs::exists(folder.file("w.safetensors")));
  // What is there may be of any step before that one, and goes on.
  const std::int64_t step = CheckpointReader::open(dir).header().step;
  EXPECT_GE(step, 2);
  EXPECT_LT(step, 50);
  EXPECT_EQ(folder.list(), (Words{"kept", "kept/checkpoint.safetensors"}));
}

TEST(NothingLost, AnEvaluationThatFailsComesAfterTheWeights) {
  const TemporaryFolder folder;
  for (const char* split : {"train", "test"}) {
    for (const char* name : {"cat", "dog"}) {
      fs::create_directories(folder.file(std::string(split) + "/" + name));
      for (int i = 0; i < 4; ++i) {
        // A grey image of 1 x 1; those of the test split end early.
        const std::string png(
            "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx\x9c"
            "c`\0\0\0\x02\0\x01H\xaf\xa4q\0\0\0\0IEND\xae"
            "B`\x82",
            67);
        std::ofstream(folder.file(std::string(split) + "/" + name + "/" + std::to_string(i) + ".png"),
                      std::ios::binary)
            << (split == std::string("test") ? png.substr(0, 40) : png);
      }
    }
  }
  const Outcome outcome = penstock(
      lenet(2, {"--data", "images:" + folder.path(), "--image-size", "28", "--channels", "1", "--evaluate",
                "--quiet", "--save", folder.file("w.safetensors"), "--checkpoint", folder.file("kept")}));
  EXPECT_NE(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(fs::exists(folder.file("w.safetensors")));
  EXPECT_EQ(CheckpointReader::open(folder.file("kept")).header().step, 2);
}

TEST(NothingLost, TheFirstSignalEndsAfterAStepWithACheckpoint) {
  const std::string whole = whole_run(100);
  for (const auto& [name, code] : {std::pair{"INT", 130}, std::pair{"TERM", 143}}) {
    const TemporaryFolder folder;
    const Outcome outcome =
        script(folder,
               std::string("trap '' INT\n$P train lenet --batch 4 --lr 0.01 --steps 100 --checkpoint $D/kept "
                           "--checkpoint-every 1 --json $D/j &\n"
                           "until [ -e $D/kept/checkpoint.safetensors ]; do sleep 0.01; done\n"
                           "kill -") +
                   name + " $!\nwait $!");
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    const std::int64_t step = CheckpointReader::open(folder.file("kept")).header().step;
    ASSERT_LT(step, 100);
    const auto json = nlohmann::json::parse(read_file(folder.file("j")));
    EXPECT_EQ(json["stopped"], true);
    EXPECT_EQ(json["steps"], step);
    EXPECT_THAT(outcome.out, HasSubstr("--resume " + folder.file("kept")));
    EXPECT_EQ(folder.list(), (Words{"j", "kept", "kept/checkpoint.safetensors"}));
    EXPECT_EQ(penstock_json(lenet(100, {"--resume", folder.file("kept")}))["weights_sha256"], whole);
  }
}

TEST(NothingLost, AnOutputThatCannotBeWrittenEndsNoRun) {
  const TemporaryFolder folder;
  const std::string whole = whole_run(60);
  // More lines than the stream has room for, so that they cannot just be lost at the end.
  for (const char* where : {"> /dev/full", ">&- 2>&-", "| head -n 1"}) {
    const Outcome outcome =
        script(folder,
               std::string("{ $P train lenet --batch 4 --lr 0.01 --steps 60 --verbose --json $D/j; echo $? > "
                           "$D/code; } ") +
                   where);
    EXPECT_EQ(read_file(folder.file("code")), "0\n") << where << ": " << outcome.err;
    EXPECT_EQ(nlohmann::json::parse(read_file(folder.file("j")))["weights_sha256"], whole) << where;
    fs::remove(folder.file("j"));
  }
}

/// The swap file is opened early: with a closed stream it must not get the stream's number.
TEST(BudgetNothingLost, ClosedStreamsAreNotTheSwapFile) {
  const TemporaryFolder folder;
  const std::string run =
      "$P train resnet20 --batch 32 --image-size 32 --steps 3 --policy window --json $D/j";
  const Outcome whole = script(folder, run + " --quiet");
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const auto expected = nlohmann::json::parse(read_file(folder.file("j")));
  const Outcome refused = script(folder, run + " --memory 8MiB");
  const std::size_t at = refused.err.find("--memory ");
  ASSERT_NE(at, std::string::npos) << refused.err;
  const std::string budget = refused.err.substr(at, refused.err.find(' ', at + 9) - at);
  for (const char* closed : {">&-", "<&- >&- 2>&-"}) {
    const Outcome outcome = script(folder, run + " " + budget + " --verbose --verify off " + closed);
    EXPECT_EQ(outcome.exit_code, 0) << budget << outcome.err;
    const auto json = nlohmann::json::parse(read_file(folder.file("j")));
    EXPECT_EQ(json["weights_sha256"], expected["weights_sha256"]) << closed;
    EXPECT_GT(json["swapped_out_bytes"], 0);
  }
}

}  // namespace
}  // namespace penstock::testing
