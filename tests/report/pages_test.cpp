#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "report/bench_page.h"
#include "report/markup.h"
#include "report/run_report.h"
#include "report/well_formed.h"

namespace penstock::report {
namespace {

const std::string kHostile = "</title></style><script>alert('x')</script>\"'&<b>]]>\x01\xFF\xF0\x9F\x98\x80";

/// A run with some of everything; `name` stands wherever names come from outside.
RunReport sample(const std::string& name, int ops = 300) {
  RunReport run;
  run.story.title = run.plan.policy = run.tier = run.story.command = run.machine = run.version = name;
  run.story.batch = 32;
  run.plan.budget_bytes = std::int64_t{1} << 30;
  run.plan.in_memory_bytes = std::int64_t{3} << 30;
  run.plan.beside_bytes = {{"program", 100 << 20}};
  run.peak_by_tag = {{"pool", 800 << 20}, {name, 100 << 20}};
  run.story.typical.swapped_out_bytes = 1234567890;
  run.story.typical.swapped_in_bytes = 987654321;
  run.story.typical.step_seconds = 7.08;
  run.story.typical.compute_seconds = 6.9;
  run.story.typical.recompute_seconds = 0.3;
  run.story.typical.stall_seconds = 0.11;
  run.plan.step.step_seconds = 7;
  run.story.accuracy = 0.5;
  run.story.accuracy_by_step = {{10, 0.2}, {50, 0.5}};
  for (int i = 0; i < 50; ++i) run.story.loss.push_back(7 * std::exp(-i / 30.0));
  run.step.step = 2;
  run.step.end_seconds = ops;
  for (int i = 0; i < ops; ++i) {
    run.step.events.push_back({Lane::compute, i % 7 == 0 ? Kind::stall : Kind::forward, name, "conv",
                               static_cast<double>(i), i + 0.9, 0});
    run.step.events.push_back({Lane::reads, Kind::transfer, name, "", static_cast<double>(i), i + 0.5, 1000});
    run.step.memory.push_back({static_cast<double>(i), (700 + i % 100) * (std::int64_t{1} << 20)});
    run.step.in_memory.push_back({static_cast<double>(i), (900 + i) * (std::int64_t{1} << 20)});
    run.step.prefetched.push_back({static_cast<double>(i), (i % 50) * (std::int64_t{1} << 20)});
  }
  run.layers = {{name, 10 << 20, 20 << 20, 0}, {"layer2", 0, 0, 5 << 20}};
  run.story.notes = {name};
  return run;
}

BenchReport sample_bench(const std::string& name) {
  BenchReport bench;
  bench.model = bench.command = bench.machine = bench.version = name;
  bench.in_memory_bytes = std::int64_t{3} << 30;
  bench.in_memory_images_per_second = 5;
  for (const char* policy : {"window", "auto"}) {
    for (int i = 1; i < 4; ++i)
      bench.points.push_back({policy + name, i * (std::int64_t{1} << 29), 2.0 + 0.5 * i, ""});
  }
  bench.points.push_back({"keep", std::int64_t{1} << 29, 0, name});
  return bench;
}

void expect_self_contained(const std::string& text) {
  WellFormed reader(text);
  EXPECT_EQ(reader.problem(), "");
  EXPECT_GT(reader.elements(), 20);
  for (const std::string& attribute : reader.attributes()) {
    EXPECT_FALSE(attribute.starts_with("src=") || attribute.starts_with("href=") ||
                 attribute.starts_with("on"))
        << attribute;
  }
  EXPECT_FALSE(std::regex_search(text, std::regex("https?:|@import|url\\(|<script|<link|<iframe|<img")));
}

TEST(Pages, AreWellFormedAndNeedNothingFromElsewhere) {
  expect_self_contained(run_page(sample("plain")));
  expect_self_contained(bench_page(sample_bench("plain")));
  expect_self_contained(run_page(RunReport{}));
  expect_self_contained(bench_page(BenchReport{}));
}

TEST(Pages, HostileNamesAreText) {
  expect_self_contained(run_page(sample(kHostile)));
  expect_self_contained(bench_page(sample_bench(kHostile)));
  EXPECT_EQ(escape(kHostile),
            "&lt;/title&gt;&lt;/style&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&#39;&amp;"
            "&lt;b&gt;]]&gt;\xEF\xBF\xBD\xEF\xBF\xBD\xF0\x9F\x98\x80");
  EXPECT_EQ(escape("\xC0\xAF\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(escape("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Pages, StaySmallHoweverManyOps) {
  const std::string page = run_page(sample("layer3.5.conv2.some.long.name.of.a.tensor", 60000));
  EXPECT_LT(page.size(), 1000000U);
  expect_self_contained(page);
}

TEST(Pages, AnswerBothQuestionsWithNumbers) {
  const RunReport run = sample("window");
  const std::string text = run_page(run);
  for (const char* figure :
       {"1.00 GiB", "3.00 GiB", "1.15 GiB", "942 MiB", "4.52 images/s", "7.08 s", "1.6 %", "4.2 %"})
    EXPECT_NE(text.find(figure), std::string::npos) << figure;
  EXPECT_NE(memory_sentence(run).find("20.0 MiB swapped to window, 5.00 MiB computed again"),
            std::string::npos)
      << memory_sentence(run);
  EXPECT_EQ(speed_sentence(run).find("A step took 7.08 s (4.52 images/s)"), 0U) << speed_sentence(run);
}

TEST(Pages, APointThatCannotRunIsListedAndNotDrawn) {
  const std::string text = bench_page(sample_bench("-p"));
  EXPECT_NE(text.find("<li>keep within 512 MiB: -p</li>"), std::string::npos);
  EXPECT_NE(text.find("cannot run"), std::string::npos);
  // Three points of each of the two policies that ran.
  const std::regex dots("class=\"dot c[0-9][a-z ]*\" d=\"([^\"]*)\"");
  int points = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), dots), end; it != end; ++it) {
    const std::string path = (*it)[1];
    points += static_cast<int>(std::count(path.begin(), path.end(), 'M'));
  }
  EXPECT_EQ(points, 6);
}

}  // namespace
}  // namespace penstock::report
