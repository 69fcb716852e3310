#include "report/bench_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/bytes.h"
#include "report/chart.h"
#include "report/markup.h"
#include "report/page.h"

namespace penstock::report {
namespace {

constexpr std::size_t kColours = 8;

/// The first colour is that of `auto`, whatever else there is.
std::string colour_of(const std::vector<std::string>& policies, std::size_t i) {
  if (policies[i] == "auto") return "c0";
  const auto ours =
      static_cast<std::size_t>(std::find(policies.begin(), policies.end(), "auto") - policies.begin());
  return fmt::format("c{}", 1 + (i < ours ? i : i - 1) % (kColours - 1));
}

double percent_of(const BenchReport& bench, const BenchPoint& point) {
  return bench.in_memory_images_per_second > 0
             ? 100 * point.images_per_second / bench.in_memory_images_per_second
             : 0;
}

/// In order of their first appearance.
std::vector<std::string> policies_of(const BenchReport& bench) {
  std::vector<std::string> names;
  for (const BenchPoint& point : bench.points) {
    if (std::find(names.begin(), names.end(), point.policy) == names.end()) names.push_back(point.policy);
  }
  return names;
}

std::string figure(const BenchReport& bench, const std::vector<std::string>& policies) {
  double most_bytes = static_cast<double>(bench.in_memory_bytes), most_percent = 100, least_percent = 100;
  for (const BenchPoint& point : bench.points) {
    if (point.images_per_second > 0) least_percent = std::min(least_percent, percent_of(bench, point));
    most_bytes = std::max(most_bytes, static_cast<double>(point.budget_bytes));
    most_percent = std::max(most_percent, percent_of(bench, point));
  }
  Plot plot(bytes_axis(most_bytes * 1.05, 7),
            plain_axis(std::max(0.0, std::floor(least_percent / 10 - 1) * 10), most_percent * 1.05, 6,
                       [](double value) { return fmt::format("{:g} %", value); }),
            320);
  plot.level(100, "budget", "in memory");
  std::string legend;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    std::vector<Point> points;
    for (const BenchPoint& point : bench.points) {
      if (point.policy == policies[i] && point.images_per_second > 0)
        points.push_back({static_cast<double>(point.budget_bytes), percent_of(bench, point)});
    }
    std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
    const std::string css = colour_of(policies, i) + (policies[i] == "auto" ? " strong" : "");
    if (!points.empty()) {
      plot.line(points, css);
      plot.dots(points, css);
    }
    legend += legend_entry(css, points.empty() ? policies[i] + " (runs under none of these)" : policies[i]);
  }
  return plot.html("speed of each policy over the budget", "budget (speed as a share of that in memory)") +
         fmt::format(R"(<div class="legend">{}</div>)", legend);
}

std::string table(const BenchReport& bench, const std::vector<std::string>& policies) {
  std::set<std::int64_t> budgets;
  std::map<std::pair<std::string, std::int64_t>, const BenchPoint*> found;
  for (const BenchPoint& point : bench.points) {
    budgets.insert(point.budget_bytes);
    found[{point.policy, point.budget_bytes}] = &point;
  }
  std::string text =
      R"(<table class="grid"><caption>% of the speed in memory<span class="wide"> (images/s)</span></caption>)"
      "<thead><tr><th>budget</th>";
  for (const std::string& policy : policies) text += fmt::format("<th>{}</th>", escape(policy));
  text += "</tr></thead><tbody>\n";
  for (const std::int64_t budget : budgets) {
    text += fmt::format("<tr><td>{}</td>", format_bytes(budget));
    for (const std::string& policy : policies) {
      const auto point = found.find({policy, budget});
      if (point == found.end()) {
        text += "<td></td>";
      } else if (point->second->images_per_second <= 0) {
        text += R"(<td><span class="wide">cannot run</span><span class="narrow">-</span></td>)";
      } else {
        text += fmt::format(R"(<td>{:.0f}<span class="wide"> % ({})</span></td>)",
                            percent_of(bench, *point->second), rate_text(point->second->images_per_second));
      }
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table>";
}

std::string absent_list(const BenchReport& bench) {
  std::string text;
  for (const BenchPoint& point : bench.points) {
    if (point.images_per_second > 0) continue;
    text += fmt::format("<li>{} within {}: {}</li>\n", escape(point.policy), format_bytes(point.budget_bytes),
                        escape(point.reason));
  }
  return text.empty() ? text : "<ul>" + text + "</ul>";
}

}  // namespace

std::string bench_page(const BenchReport& bench) {
  const std::vector<std::string> policies = policies_of(bench);
  const std::string title = fmt::format("{}, batch {}: policies and budgets", bench.model, bench.batch);
  std::string body = fmt::format("<h1>{}</h1>\n", escape(title));
  const BenchPoint* smallest = nullptr;
  for (const BenchPoint& point : bench.points) {
    if (point.images_per_second <= 0) continue;
    if (smallest == nullptr || point.budget_bytes < smallest->budget_bytes ||
        (point.budget_bytes == smallest->budget_bytes &&
         point.images_per_second > smallest->images_per_second))
      smallest = &point;
  }
  std::string sentence =
      fmt::format("In memory: {} images/s with {}.", rate_text(bench.in_memory_images_per_second),
                  format_bytes(bench.in_memory_bytes));
  if (smallest != nullptr) {
    sentence +=
        fmt::format(" Under the smallest budget that was run, {}, policy {} reaches {:.0f} % of that.",
                    format_bytes(smallest->budget_bytes), smallest->policy, percent_of(bench, *smallest));
  }
  body += fmt::format("<p class=\"answer\"><b>How fast under which budget?</b>{}</p>\n", escape(sentence));
  body += section("Speed over the budget", figure(bench, policies));
  body += section("The same as numbers", table(bench, policies));
  const std::string absent = absent_list(bench);
  if (!absent.empty()) body += section("What cannot run", absent);
  body += section("Machine and command",
                  fmt::format("<p>{}</p><pre>{}</pre>", escape(bench.machine), escape(bench.command)));
  body += fmt::format("<footer>Penstock {}</footer>", escape(bench.version));
  return page(title + " - Penstock", body);
}

}  // namespace penstock::report
