#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/bytes.h"
#include "cli/penstock.h"
#include "report/well_formed.h"

namespace penstock::testing {
namespace {

using ::testing::HasSubstr;

/// One run under a budget with everything written about it.
class ReportFiles : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    ::setenv("XDG_CACHE_HOME", folder_->path().c_str(), 1);
    const std::vector<std::string> small{"resnet20", "--image-size", "24", "--batch", "48"};
    std::vector<std::string> arguments{"plan"};
    arguments.insert(arguments.end(), small.begin(), small.end());
    const auto plan = penstock_json(arguments);
    arguments[0] = "train";
    const std::int64_t budget = plan["smallest_bytes"].get<std::int64_t>() + 5 * kMiB;
    for (const std::string& more :
         {std::string("--steps"), std::string("4"), std::string("--memory"), std::to_string(budget),
          std::string("--trace"), folder_->file("trace.json"), std::string("--report"),
          folder_->file("report.html"), std::string("--save"), folder_->file("<script>&'\".safetensors")})
      arguments.push_back(more);
    result_ = penstock_json(arguments);
    ::unsetenv("XDG_CACHE_HOME");
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string page() { return read_file(folder_->file("report.html")); }

  static std::unique_ptr<TemporaryFolder> folder_;
  static nlohmann::json result_;
};

std::unique_ptr<TemporaryFolder> ReportFiles::folder_;
nlohmann::json ReportFiles::result_;

TEST_F(ReportFiles, ThePageIsWellFormedAndHasTheFigures) {
  const std::string text = page();
  report::WellFormed reader(text);
  EXPECT_EQ(reader.problem(), "");
  EXPECT_LT(text.size(), 1000000U);
  for (const char* key : {"budget_bytes", "peak_rss_bytes", "in_memory_bytes", "pool_peak_bytes",
                          "swapped_out_bytes", "swapped_in_bytes", "swap_file_bytes"}) {
    EXPECT_THAT(text, HasSubstr("<code>" + std::string(key) + "</code></td><td>" +
                                format_bytes(result_[key].get<std::int64_t>()) + "<"));
  }
  EXPECT_THAT(text, HasSubstr("&lt;script&gt;&amp;"));  // of the command
  EXPECT_THAT(text, HasSubstr("class=\"line budget"));
  EXPECT_THAT(text, HasSubstr("layer1.0"));
}

TEST_F(ReportFiles, TheTraceHasEachLane) {
  const auto trace = nlohmann::json::parse(read_file(folder_->file("trace.json")));
  std::set<std::string> steps;
  std::map<int, int> events;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++events[event["tid"].get<int>()];
    if (event["cat"] == "step") steps.insert(event["name"]);
  }
  // The last plan's: where steps differ from their prediction, there is another one.
  EXPECT_FALSE(steps.empty());
  for (const int lane : {1, 2, 3}) EXPECT_GT(events[lane], 0) << lane;
}

TEST_F(ReportFiles, ChromiumShowsTheFigures) {
  if (run_program({"sh", "-c", "command -v chromium"}).exit_code != 0) GTEST_SKIP() << "no chromium here";
  const Outcome shown = run_program({"chromium", "--headless", "--no-sandbox", "--disable-gpu",
                                     "--user-data-dir=" + folder_->file("browser"), "--dump-dom",
                                     "file://" + folder_->file("report.html")});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("Where did the memory go?"));
  for (const char* key : {"budget_bytes", "peak_rss_bytes", "in_memory_bytes", "swapped_out_bytes"})
    EXPECT_THAT(shown.out, HasSubstr(format_bytes(result_[key].get<std::int64_t>()))) << key;
  EXPECT_THAT(shown.out, HasSubstr(result_["weights_sha256"].get<std::string>()));
}

TEST(Report, PathsAreCheckedBeforeTraining) {
  for (const char* option : {"--trace", "--report"}) {
    const Outcome outcome = penstock({"train", "lenet", "--steps", "1", option, "/no/such/folder/file"});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr(option));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(Report, InMemoryThereIsAPageToo) {
  const TemporaryFolder folder;
  penstock_json({"train", "lenet", "--batch", "8", "--steps", "2", "--report", folder.file("r.html"),
                 "--trace", folder.file("t.json")});
  const std::string text = read_file(folder.file("r.html"));
  EXPECT_EQ(report::WellFormed(text).problem(), "");
  EXPECT_THAT(text, HasSubstr("Nothing had to be swapped"));
  EXPECT_TRUE(nlohmann::json::accept(read_file(folder.file("t.json"))));
}

TEST(Verbose, TellsEachPartAndEachStep) {
  const Outcome outcome = penstock({"train", "lenet", "--batch", "8", "--steps", "2", "--verbose"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"build ", "plan ", "fill ", "train ", "step 1/2: ", "step 2/2: "})
    EXPECT_THAT(outcome.out, HasSubstr(part));
}

}  // namespace
}  // namespace penstock::testing
