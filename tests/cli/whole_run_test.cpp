#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/text_file.h"
#include "cli/app.h"
#include "cli/penstock.h"
#include "data/checkpoint_file.h"
#include "support/files/failing_new.h"
#include "support/files/faulty_files.h"
#include "support/files/power_cut_files.h"
#include "support/files/test_folder.h"

// A whole small run of the program in this process, by its command line, with all that it reads and writes:
// model, text, plan and checkpoint in; checkpoints, weights, result, report and trace out. Each call on files
// goes wrong in turn, and each allocation. One in so many of them here; with PENSTOCK_FULL_SWEEP in the
// environment all.
namespace penstock::testing {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

std::int64_t stride(std::int64_t usual) {
  return std::getenv("PENSTOCK_FULL_SWEEP") != nullptr ? 1 : usual;
}

constexpr std::int64_t kNeverFails = std::int64_t{1} << 60;

/// The program, in this process; its n-th allocation fails, from 0 on.
Outcome run_here(Words words, std::int64_t failing_at = kNeverFails, std::int64_t* allocations = nullptr) {
  words.insert(words.begin(), "penstock");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  Outcome outcome;
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  try {
    const FailingNew failing(failing_at);
    outcome.exit_code = cli::run(static_cast<int>(words.size()), arguments.data());
    if (allocations != nullptr) *allocations = failing.taken();
  } catch (...) {
    ::testing::internal::GetCapturedStdout();
    ::testing::internal::GetCapturedStderr();
    throw;
  }
  outcome.out = ::testing::internal::GetCapturedStdout();
  outcome.err = ::testing::internal::GetCapturedStderr();
  return outcome;
}

/// What all runs read; made once.
class WholeSource {
 public:
  WholeSource() {
    std::ofstream(in("config.json"))
        << R"({"model_type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 8, "vocab_size": 256, "n_positions": 8})";
    std::ofstream text(in("text.txt"));
    for (int i = 0; i < 20; ++i) text << "the quick brown fox jumps over the lazy dog; ";
    text.close();
    require_success(run_here(model("plan", {"--memory", "2GiB", "--out", in("plan.json")})));
    require_success(run_here(model("train", {"--quiet", "--steps", "1", "--checkpoint", in("start")})));
    require_success(run_here(model("train", {"--quiet", "--steps", "3", "--json", in("j")})));
    sha256_ = nlohmann::json::parse(penstock::read_file(in("j")))["weights_sha256"];
  }

  const std::string& sha256() const { return sha256_; }

  /// Two steps from a checkpoint, with all files that there are.
  Words train(const TestFolder& out, const std::string& from) const {
    return model("train", {"--quiet",
                           "--steps",
                           "3",
                           "--resume",
                           from,
                           "--plan",
                           in("plan.json"),
                           "--checkpoint",
                           out / "kept",
                           "--checkpoint-every",
                           "1",
                           "--keep-checkpoints",
                           "2",
                           "--save",
                           out / "w",
                           "--json",
                           out / "j",
                           "--report",
                           out / "r",
                           "--trace",
                           out / "t"});
  }
  Words train(const TestFolder& out) const { return train(out, in("start")); }
  Words plan(const TestFolder& out) const {
    return model("plan", {"--memory", "2GiB", "--out", out / "plan", "--json", out / "j"});
  }

  static void require_success(const Outcome& outcome) {
    if (outcome.exit_code != 0) throw std::runtime_error(outcome.err);
  }

 private:
  std::string in(const std::string& name) const { return folder_ / name; }
  Words model(const std::string& command, const Words& more) const {
    Words words{command, in("config.json"), "--data", "text:" + in("text.txt"), "--sequence", "8", "--batch",
                "2",     "--threads",       "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  TestFolder folder_;
  std::string sha256_;
};

const WholeSource& whole_source() {
  static const WholeSource made;
  return made;
}

void expect_one_line(const std::string& text, const std::string& what) {
  EXPECT_EQ(text.rfind("penstock: ", 0), 0U) << what << ": " << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << what << ": " << text;
}

void expect_no_partial_files(const TestFolder& out, const std::string& what) {
  for (const auto& entry : fs::recursive_directory_iterator(out.path()))
    EXPECT_EQ(entry.path().filename().string().find("partial"), std::string::npos)
        << what << ": " << entry.path();
}

/// All that a run writes is there and whole.
void expect_whole(const TestFolder& out, const std::string& what) {
  EXPECT_EQ(nlohmann::json::parse(penstock::read_file(out / "j"))["weights_sha256"], whole_source().sha256())
      << what;
  EXPECT_EQ(CheckpointReader::open(out / "kept").header().step, 3) << what;
  EXPECT_NE(penstock::read_file(out / "r").find("</html>"), std::string::npos) << what;
  EXPECT_TRUE(nlohmann::json::parse(penstock::read_file(out / "t")).contains("traceEvents")) << what;
  EXPECT_GT(fs::file_size(out / "w"), 1000U) << what;
  expect_no_partial_files(out, what);
}

/// Whatever happened: the last committed checkpoint goes on to the same bits, and the next run cleans up.
void expect_goes_on(const TestFolder& out, const std::string& what) {
  const bool kept = fs::exists(out / "kept/checkpoint.safetensors");
  const Outcome next = run_here(kept ? whole_source().train(out, out / "kept") : whole_source().train(out));
  ASSERT_EQ(next.exit_code, 0) << what << ": " << next.err;
  // A run that had nothing left to do writes no checkpoint, and so sees none of what an earlier one left.
  if (nlohmann::json::parse(penstock::read_file(out / "j"))["loss"].empty()) {
    EXPECT_EQ(nlohmann::json::parse(penstock::read_file(out / "j"))["weights_sha256"],
              whole_source().sha256());
    return;
  }
  expect_whole(out, what);
}

/// Runs with one fault; whether it struck.
bool run_with(const FileFault& fault, const std::string& what) {
  const TestFolder out;
  FaultyFiles faulty(fault);
  Outcome outcome;
  {
    const FilesReplaced replaced(faulty);
    outcome = run_here(whole_source().train(out));
  }
  EXPECT_EQ(faulty.open_files(), 0) << what;
  if (outcome.exit_code == 0) {
    EXPECT_EQ(outcome.err, "") << what;
    expect_whole(out, what);
  } else {
    expect_one_line(outcome.err, what);
    EXPECT_NE(fault.error_number, EINTR) << what << ": " << outcome.err;
    EXPECT_NE(fault.kind, FileFault::Kind::short_count) << what << ": " << outcome.err;
    expect_no_partial_files(out, what);
    expect_goes_on(out, what);
  }
  return faulty.struck();
}

std::int64_t calls_of_a_run() {
  const TestFolder out;
  FaultyFiles counting;
  const FilesReplaced replaced(counting);
  WholeSource::require_success(run_here(whole_source().train(out)));
  return counting.calls();
}

TEST(WholeRunSweep, EveryCallThatFails) {
  int struck = 0, first = 0;
  using Kind = FileFault::Kind;
  const std::int64_t calls = calls_of_a_run();
  for (const FileFault& kind :
       {FileFault{Kind::error, 0, EIO, false}, FileFault{Kind::error, 0, ENOSPC, false},
        FileFault{Kind::error, 0, EACCES, false}, FileFault{Kind::error, 0, EINTR, false},
        FileFault{Kind::short_count, 0, 0, false}}) {
    for (std::int64_t at = first++; at < calls; at += stride(23)) {
      FileFault fault = kind;
      fault.at = at;
      struck +=
          run_with(fault, "error " + std::to_string(kind.error_number) + " at call " + std::to_string(at));
    }
  }
  EXPECT_GT(struck, 15);
  RecordProperty("calls", static_cast<int>(calls));
  RecordProperty("faults", struck);
}

TEST(WholeRunSweep, AKillOrAPowerCutAtEveryCall) {
  int first = 0, struck = 0;
  const std::int64_t calls = calls_of_a_run();
  for (const int cut : {0, 1, 2}) {
    for (std::int64_t at = first++; at < calls; at += stride(23)) {
      const std::string what = "cut " + std::to_string(cut) + " at call " + std::to_string(at);
      const TestFolder out;
      PowerCutFiles disk(out.path());
      FaultyFiles faulty({FileFault::Kind::kill, at, 0, false}, cut > 0 ? &disk : nullptr);
      try {
        const FilesReplaced replaced(faulty);
        run_here(whole_source().train(out));
      } catch (const Killed&) {
        ++struck;
      }
      faulty.bury();
      if (cut > 0) disk.cut(cut == 1 ? PowerCutFiles::Loss::all : PowerCutFiles::Loss::bytes_only);
      expect_goes_on(out, what);
    }
  }
  EXPECT_GT(struck, 5);
  RecordProperty("kills", struck);
}

TEST(WholeRunSweep, EveryCallOfPlanningThatFails) {
  for (std::int64_t at = 0;; at += stride(5)) {
    const TestFolder out;
    FaultyFiles faulty({FileFault::Kind::error, at, EIO, false});
    Outcome outcome;
    {
      const FilesReplaced replaced(faulty);
      outcome = run_here(whole_source().plan(out));
    }
    EXPECT_EQ(faulty.open_files(), 0) << at;
    expect_no_partial_files(out, "call " + std::to_string(at));
    if (outcome.exit_code == 0) {
      EXPECT_EQ(nlohmann::json::parse(penstock::read_file(out / "plan"))["batch"], 2) << at;
    } else {
      expect_one_line(outcome.err, "call " + std::to_string(at));
    }
    if (!faulty.struck()) break;
  }
}

TEST(WholeRunSweep, EveryAllocationThatFails) {
  std::int64_t allocations = 0;
  {
    const TestFolder out;
    WholeSource::require_success(run_here(whole_source().train(out), kNeverFails, &allocations));
  }
  ASSERT_GT(allocations, 1000);
  // While the words are read nothing has begun. CLI11 ends the program there when memory fails it, because
  // functions of its that take memory say that they throw nothing.
  std::int64_t reading = 0;
  {
    const TestFolder out;
    Words words = whole_source().train(out);
    words[1] = out / "missing";
    EXPECT_EQ(run_here(words, kNeverFails, &reading).exit_code, 2);
  }
  ASSERT_LT(reading, allocations / 2);
  int failed = 0, overcome = 0;
  for (std::int64_t at = reading; at < allocations; at += stride((allocations - reading) / 60 + 1)) {
    const std::string what = "allocation " + std::to_string(at);
    const TestFolder out;
    FaultyFiles watched;
    Outcome outcome;
    {
      const FilesReplaced replaced(watched);
      outcome = run_here(whole_source().train(out), at);
    }
    if (!FailingNew::struck()) continue;
    EXPECT_EQ(watched.open_files(), 0) << what;
    if (outcome.exit_code == 0) {
      ++overcome;
      expect_whole(out, what);
    } else {
      ++failed;
      expect_one_line(outcome.err, what);
      expect_no_partial_files(out, what);
      if (failed % 8 == 1) expect_goes_on(out, what);
    }
  }
  EXPECT_GT(failed, 20);
  RecordProperty("allocations", static_cast<int>(allocations));
  RecordProperty("failed", failed);
  RecordProperty("overcome", overcome);
}

}  // namespace
}  // namespace penstock::testing
