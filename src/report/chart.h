#pragma once

#include <functional>
#include <string>
#include <vector>

namespace penstock::report {

struct Tick {
  double value = 0;
  std::string text;
};

/// A range of values with round places in it.
struct Axis {
  double low = 0, high = 1;
  std::vector<Tick> ticks;

  /// Where a value lies: 0 at the low end, 1 at the high one.
  double at(double value) const { return high > low ? (value - low) / (high - low) : 0; }
};

/// About `count` ticks of 1, 2 or 5 times a power of ten.
Axis plain_axis(double low, double high, int count, const std::function<std::string(double)>& text);
/// From 0, in binary units.
Axis bytes_axis(double high, int count);
/// Of a duration that begins at 0.
Axis seconds_axis(double high, int count);

inline constexpr double kPlotWidth = 1000;  ///< of the drawings; on the page it is stretched

struct Point {
  double x = 0, y = 0;  ///< values of the axes
};

/// A plot: labels are text of the page, which keeps its size, and only the drawing between them is stretched
/// to the width there is. Shapes are drawn in the order in which they are added.
class Plot {
 public:
  Plot(Axis x, Axis y, double height_px);

  /// From point to point; `css` names the class.
  void line(const std::vector<Point>& points, const std::string& css);
  /// A value holds until the next point.
  void steps(const std::vector<Point>& points, const std::string& css);
  /// The same, filled down to the axis.
  void area(const std::vector<Point>& points, const std::string& css);
  void dots(const std::vector<Point>& points, const std::string& css);
  /// From one side to the other, with a text at its right end.
  void level(double value, const std::string& css, const std::string& text);

  std::string html(const std::string& description, const std::string& x_title) const;

 private:
  double x(double value) const;
  double y(double value) const;
  std::string step_path(const std::vector<Point>& points) const;

  Axis x_, y_;
  double height_px_;
  std::string shapes_;
  std::string labels_;
};

/// The ticks of the x axis alone, to stand beneath several drawings.
std::string x_labels(const Axis& axis, const std::string& title);

}  // namespace penstock::report
