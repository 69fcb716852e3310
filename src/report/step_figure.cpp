#include "report/step_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/bytes.h"
#include "report/chart.h"
#include "report/markup.h"
#include "report/page.h"

namespace penstock::report {
namespace {

/// Columns that the time is divided into: what is shorter cannot be seen anyway, and the page stays small.
constexpr int kColumns = 1000;
constexpr int kKinds = 6;

/// The most bytes in each column, as steps.
std::vector<Point> envelope(const std::vector<plan::MemoryPoint>& memory, const StepView& step,
                            std::int64_t add_bytes) {
  const double length = step.end_seconds - step.start_seconds;
  if (memory.empty() || length <= 0) return {};
  std::vector<std::int64_t> most(kColumns, 0);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const double until = i + 1 < memory.size() ? memory[i + 1].seconds : step.end_seconds;
    const auto column = [&](double seconds) {
      return std::clamp(static_cast<int>((seconds - step.start_seconds) / length * kColumns), 0,
                        kColumns - 1);
    };
    for (int c = column(memory[i].seconds); c <= column(until); ++c) {
      std::int64_t& bytes = most[static_cast<std::size_t>(c)];
      bytes = std::max(bytes, memory[i].bytes);
    }
  }
  std::vector<Point> points;
  for (int c = 0; c < kColumns; ++c) {
    const auto bytes = static_cast<double>(most[static_cast<std::size_t>(c)] + add_bytes);
    if (points.empty() || points.back().y != bytes) points.push_back({length * c / kColumns, bytes});
  }
  points.push_back({length, points.back().y});
  return points;
}

/// One lane as coloured stretches: each column has the kind that took most of it, and stalls are not lost
/// beside longer things.
class LaneRow {
 public:
  LaneRow(const StepView& step, Lane lane) : step_(step), lane_(lane), columns_(kColumns) {
    for (const LaneEvent& event : step.events) {
      if (event.lane == lane) add(event);
    }
  }

  std::string html() const {
    std::string shapes;
    for (int first = 0; first < kColumns;) {
      const int kind = kind_of(columns_[static_cast<std::size_t>(first)]);
      int last = first + 1;
      while (last < kColumns && kind_of(columns_[static_cast<std::size_t>(last)]) == kind) ++last;
      if (kind >= 0) shapes += stretch(first, last, static_cast<Kind>(kind));
      first = last;
    }
    return fmt::format(
        R"(<div class="lane"><span class="name">{0}</span><svg viewBox="0 0 {1} 26" preserveAspectRatio="none" role="img" aria-label="{0} over the step">{2}</svg></div>)",
        lane_name(lane_), kColumns, shapes);
  }

 private:
  struct Column {
    std::array<double, kKinds> share{};
    const LaneEvent* longest = nullptr;
    double longest_share = 0;
  };

  void add(const LaneEvent& event) {
    const double length = step_.end_seconds - step_.start_seconds;
    if (length <= 0) return;
    const double from = std::max(0.0, (event.start_seconds - step_.start_seconds) / length * kColumns);
    const double to =
        std::min<double>(kColumns, (event.end_seconds - step_.start_seconds) / length * kColumns);
    for (int c = static_cast<int>(from); c < to; ++c) {
      const double share = std::min<double>(to, c + 1) - std::max<double>(from, c);
      if (share <= 0) continue;
      Column& column = columns_[static_cast<std::size_t>(c)];
      column.share[static_cast<std::size_t>(event.kind)] += share;
      if (share > column.longest_share) {
        column.longest_share = share;
        column.longest = &event;
      }
    }
  }

  static int kind_of(const Column& column) {
    if (column.share[static_cast<std::size_t>(Kind::stall)] > 0.2) return static_cast<int>(Kind::stall);
    const auto most = std::max_element(column.share.begin(), column.share.end());
    return *most < 0.1 ? -1 : static_cast<int>(most - column.share.begin());
  }

  std::string stretch(int first, int last, Kind kind) const {
    const char* css = kind == Kind::transfer ? lane_name(lane_) : kind_name(kind);
    const std::string place = fmt::format(R"(x="{}" y="0" width="{}" height="26")", first, last - first);
    const LaneEvent* longest = nullptr;
    for (int c = first; c < last; ++c) {
      const LaneEvent* event = columns_[static_cast<std::size_t>(c)].longest;
      if (event == nullptr) continue;
      if (longest == nullptr ||
          event->end_seconds - event->start_seconds > longest->end_seconds - longest->start_seconds)
        longest = event;
    }
    if (last - first < 2 || longest == nullptr) return fmt::format(R"(<rect class="{}" {}/>)", css, place);
    return fmt::format(R"(<rect class="{}" {}><title>{}; longest: {} ({})</title></rect>)", css, place,
                       kind_name(kind), escape(longest->name),
                       seconds_text(longest->end_seconds - longest->start_seconds));
  }

  const StepView& step_;
  Lane lane_;
  std::vector<Column> columns_;
};

double highest(const std::vector<Point>& points) {
  double high = 0;
  for (const Point& point : points) high = std::max(high, point.y);
  return high;
}

bool has_kind(const StepView& step, Kind kind) {
  return std::any_of(step.events.begin(), step.events.end(),
                     [&](const LaneEvent& event) { return event.kind == kind; });
}

bool has_lane(const StepView& step, Lane lane) {
  return std::any_of(step.events.begin(), step.events.end(),
                     [&](const LaneEvent& event) { return event.lane == lane; });
}

}  // namespace

std::string step_figure(const RunReport& run) {
  const StepView& step = run.step;
  const double length = step.end_seconds - step.start_seconds;
  const std::vector<Point> need = envelope(step.in_memory, step, run.plan.overhead_bytes());
  const std::vector<Point> memory = envelope(step.memory, step, run.plan.overhead_bytes());
  const std::vector<Point> prefetched = envelope(step.prefetched, step, run.plan.overhead_bytes());
  const bool ahead = highest(prefetched) > static_cast<double>(run.plan.overhead_bytes());
  const bool budget_in_sight = static_cast<double>(run.plan.budget_bytes) < 3 * highest(need);
  const double high = 1.08 * std::max({highest(need), highest(memory),
                                       budget_in_sight ? static_cast<double>(run.plan.budget_bytes) : 0.0});
  const Axis seconds = seconds_axis(length, 8);

  Plot plot(seconds, bytes_axis(high, 5), 260);
  plot.area(need, "need");
  plot.area(memory, "memory");
  if (ahead) plot.area(prefetched, "prefetched");
  const auto overhead = static_cast<double>(run.plan.overhead_bytes());
  plot.area({{0, overhead}, {length, overhead}}, "program");
  if (budget_in_sight)
    plot.level(static_cast<double>(run.plan.budget_bytes), "budget",
               "budget " + format_bytes(run.plan.budget_bytes));
  std::string text = plot.html("memory over one step against the budget", "");
  for (const Lane lane : {Lane::compute, Lane::reads, Lane::writes, Lane::network}) {
    if (lane != Lane::network || has_lane(step, lane)) text += LaneRow(step, lane).html();
  }
  text += x_labels(seconds, fmt::format("time of step {}", step.step));
  text += R"(<div class="legend">)" + legend_entry("need", "everything in memory") +
          legend_entry("memory", "tensors in the pool");
  if (ahead) text += legend_entry("prefetched", "of these, read ahead");
  text += legend_entry("program", "program, loader, margin");
  if (!budget_in_sight)
    text +=
        fmt::format("<span>budget {}, above this scale</span>", escape(format_bytes(run.plan.budget_bytes)));
  text += R"(</div><div class="legend">)";
  for (const Kind kind : {Kind::forward, Kind::backward, Kind::update, Kind::recompute, Kind::stall}) {
    if (has_kind(step, kind) || kind == Kind::stall) {
      text += legend_entry(kind_name(kind), kind == Kind::stall       ? "stall: waiting for the tier"
                                            : kind == Kind::recompute ? "computed again"
                                                                      : kind_name(kind));
    }
  }
  return text + "</div>";
}

}  // namespace penstock::report
