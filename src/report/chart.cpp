#include "report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/bytes.h"
#include "report/markup.h"

namespace penstock::report {
namespace {

double round_step(double range, int count) {
  const double rough = range / std::max(1, count);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= 1.25 * factor * power) return factor * power;
  }
  return 10 * power;
}

void add_ticks(Axis& axis, double step, const std::function<std::string(double)>& text) {
  const auto first = static_cast<long>(std::ceil(axis.low / step - 1e-9));
  const auto last = static_cast<long>(std::floor(axis.high / step + 1e-9));
  for (long i = first; i <= last; ++i) {
    const double value = static_cast<double>(i) * step;
    axis.ticks.push_back({value, text(value)});
  }
}

}  // namespace

Axis plain_axis(double low, double high, int count, const std::function<std::string(double)>& text) {
  Axis axis{low, high > low ? high : low + 1, {}};
  add_ticks(axis, round_step(axis.high - axis.low, count), text);
  return axis;
}

Axis bytes_axis(double high, int count) {
  Axis axis{0, std::max(high, 1.0), {}};
  const double unit = std::pow(1024, std::floor(std::log(axis.high) / std::log(1024)));
  double step = round_step(axis.high / unit, count) * unit;
  // Halves and quarters of a unit read better than tenths of it.
  if (step < unit && unit > 1) step = std::exp2(std::round(std::log2(axis.high / count)));
  add_ticks(axis, step, [](double value) {
    const auto bytes = static_cast<std::int64_t>(value);
    return bytes == 0 ? std::string("0") : format_bytes(bytes);
  });
  return axis;
}

Axis seconds_axis(double high, int count) {
  const double step = round_step(std::max(high, 1e-6), count);
  Axis axis{0, std::max(high, 1e-6), {}};
  const bool milli = step < 0.2;
  add_ticks(axis, step, [&](double value) {
    return value == 0 ? std::string("0")
           : milli    ? fmt::format("{:g} ms", value * 1e3)
                      : fmt::format("{:g} s", value);
  });
  return axis;
}

Plot::Plot(Axis x, Axis y, double height_px) : x_(std::move(x)), y_(std::move(y)), height_px_(height_px) {
  for (const Tick& tick : y_.ticks) {
    const double at = this->y(tick.value);
    fmt::format_to(std::back_inserter(shapes_), R"(<path class="grid" d="M0 {0:.1f}H{1:g}"/>)", at,
                   kPlotWidth);
    fmt::format_to(std::back_inserter(labels_), R"(<span class="y" style="top:{:.1f}px">{}</span>)", at,
                   escape(tick.text));
  }
}

double Plot::x(double value) const {
  return std::clamp(x_.at(value), 0.0, 1.0) * kPlotWidth;
}

double Plot::y(double value) const {
  return height_px_ - std::clamp(y_.at(value), 0.0, 1.0) * height_px_;
}

std::string Plot::step_path(const std::vector<Point>& points) const {
  std::string path;
  for (const Point& point : points) {
    path += path.empty() ? fmt::format("M{:.1f} {:.1f}", x(point.x), y(point.y))
                         : fmt::format("H{:.1f}V{:.1f}", x(point.x), y(point.y));
  }
  return path;
}

void Plot::line(const std::vector<Point>& points, const std::string& css) {
  std::string path;
  for (const Point& point : points) {
    fmt::format_to(std::back_inserter(path), "{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(point.x),
                   y(point.y));
  }
  shapes_ += fmt::format(R"(<path class="line {}" d="{}"/>)", css, path);
}

void Plot::steps(const std::vector<Point>& points, const std::string& css) {
  shapes_ += fmt::format(R"(<path class="line {}" d="{}"/>)", css, step_path(points));
}

void Plot::area(const std::vector<Point>& points, const std::string& css) {
  if (points.empty()) return;
  shapes_ += fmt::format(R"(<path class="area {}" d="{}V{:g}H{:.1f}Z"/>)", css, step_path(points), height_px_,
                         x(points.front().x));
}

void Plot::dots(const std::vector<Point>& points, const std::string& css) {
  std::string path;
  for (const Point& point : points) {
    fmt::format_to(std::back_inserter(path), "M{:.1f} {:.1f}h0.01", x(point.x), y(point.y));
  }
  shapes_ += fmt::format(R"(<path class="dot {}" d="{}"/>)", css, path);
}

void Plot::level(double value, const std::string& css, const std::string& text) {
  shapes_ += fmt::format(R"(<path class="line {}" d="M0 {:.1f}H{:g}"/>)", css, y(value), kPlotWidth);
  labels_ += fmt::format(R"(<span class="level" style="top:{:.1f}px">{}</span>)", y(value), escape(text));
}

std::string Plot::html(const std::string& description, const std::string& x_title) const {
  return fmt::format(
             R"(<div class="plot" style="height:{0:g}px"><svg viewBox="0 0 {1:g} {0:g}" preserveAspectRatio="none" role="img" aria-label="{2}">{3}</svg>{4}</div>)",
             height_px_, kPlotWidth, escape(description), shapes_, labels_) +
         (x_title.empty() ? "" : x_labels(x_, x_title));
}

std::string x_labels(const Axis& axis, const std::string& title) {
  std::string text = R"(<div class="x-axis">)";
  for (std::size_t i = 0; i < axis.ticks.size(); ++i) {
    const double at = axis.at(axis.ticks[i].value);
    // Every other tick goes where there is little width; a label at the end would stick out.
    const char* css = i % 2 == 1 ? "x odd" : "x";
    if (at > 0.97) continue;
    text += fmt::format(R"(<span class="{}" style="left:{:.2f}%">{}</span>)", css, at * 100,
                        escape(axis.ticks[i].text));
  }
  return text + fmt::format(R"(</div><div class="x-title">{}</div>)", escape(title));
}

}  // namespace penstock::report
