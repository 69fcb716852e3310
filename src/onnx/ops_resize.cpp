#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

/// How one axis changes.
struct Axis {
  std::int64_t in = 1, out = 1;
  double scale = 1;
};

struct Rule {
  std::string coordinates, mode, nearest;
  double cubic = -0.75;
  bool exclude_outside = false, antialias = false;
};

/// Where element i of the result lies in the input.
double place_of(const Importer& at, const Rule& rule, const Axis& a, std::int64_t i) {
  const auto x = static_cast<double>(i), in = static_cast<double>(a.in), out = static_cast<double>(a.out);
  const double exact = a.scale * in;  // the extent that a scale means, which may be a fraction
  if (rule.coordinates == "half_pixel") return (x + 0.5) / a.scale - 0.5;
  if (rule.coordinates == "pytorch_half_pixel") return a.out > 1 ? (x + 0.5) / a.scale - 0.5 : 0;
  if (rule.coordinates == "asymmetric") return x / a.scale;
  if (rule.coordinates == "align_corners") return exact > 1 ? x * (in - 1) / (exact - 1) : 0;
  if (rule.coordinates == "half_pixel_symmetric") {
    // Keeps the middle where a scale gives a fraction of an element.
    const double adjustment = out / exact;
    const double middle = in / 2;
    return middle * (1 - adjustment) + (x + 0.5) / a.scale - 0.5;
  }
  at.fail("resizes with " + rule.coordinates + ", which is not supported");
}

std::int64_t nearest_of(const Importer& at, const std::string& rule, double place) {
  const double below = std::floor(place);
  if (rule == "floor") return static_cast<std::int64_t>(below);
  if (rule == "ceil") return static_cast<std::int64_t>(std::ceil(place));
  if (rule == "round_prefer_floor")
    return static_cast<std::int64_t>(place - below == 0.5 ? below : std::round(place));
  if (rule == "round_prefer_ceil")
    return static_cast<std::int64_t>(place - below == 0.5 ? below + 1 : std::round(place));
  at.fail("resizes to the nearest by " + rule + ", which is not known");
}

double linear_weight(double distance) {
  return std::max(0.0, 1 - std::fabs(distance));
}

double cubic_weight(double distance, double a) {
  const double d = std::fabs(distance);
  if (d <= 1) return (a + 2) * d * d * d - (a + 3) * d * d + 1;
  if (d < 2) return a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a;
  return 0;
}

/// What element i of the result takes of each element of the input.
void add_weights(const Importer& at, const Rule& rule, const Axis& a, std::int64_t i,
                 std::vector<double>& matrix) {
  const double place = place_of(at, rule, a, i);
  const bool cubic = rule.mode == "cubic";
  const double narrow = rule.antialias ? std::min(1.0, a.scale) : 1;
  const auto reach = static_cast<std::int64_t>(std::ceil((cubic ? 2 : 1) / narrow)) + 1;
  const auto middle = static_cast<std::int64_t>(std::floor(place));
  std::vector<std::pair<std::int64_t, double>> taken;
  double sum = 0;
  for (std::int64_t k = middle - reach; k <= middle + reach; ++k) {
    const double distance = (static_cast<double>(k) - place) * narrow;
    const double weight = cubic ? cubic_weight(distance, rule.cubic) : linear_weight(distance);
    const bool outside = k < 0 || k >= a.in;
    if (weight == 0 || (outside && rule.exclude_outside)) continue;
    taken.emplace_back(std::clamp<std::int64_t>(k, 0, a.in - 1), weight);
    sum += weight;
  }
  if (sum == 0) at.fail("resizes to a place outside of its input");
  for (const auto& [k, weight] : taken) matrix[static_cast<std::size_t>(k * a.out + i)] += weight / sum;
}

Value resize_axis(Importer& at, Value x, std::size_t axis, const Rule& rule, const Axis& a) {
  if (rule.mode == "nearest") {
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < a.out; ++i) {
      const std::int64_t place = nearest_of(at, rule.nearest, place_of(at, rule, a, i));
      places.push_back(std::clamp<std::int64_t>(place, 0, a.in - 1));
    }
    return picked(at, x, axis, places);
  }
  constexpr std::int64_t kLargest = 1 << 22;
  if (a.in > kLargest / a.out) at.fail("is too large along an axis");
  std::vector<double> matrix(static_cast<std::size_t>(a.in * a.out), 0);
  for (std::int64_t i = 0; i < a.out; ++i) add_weights(at, rule, a, i, matrix);
  return times_table(at, x, axis, a.out, matrix);
}

std::vector<double> numbers(Importer& at, std::size_t input) {
  std::vector<double> values;
  if (!at.has(input)) return values;
  const Constant& given = at.constant(input);
  for (std::size_t i = 0; i < static_cast<std::size_t>(given.size()); ++i) values.push_back(given.number(i));
  return values;
}

/// Which extents each axis of x gets.
std::vector<Axis> resized_axes(Importer& at, const Extents& x) {
  const bool upsample = at.node().op_type == "Upsample";
  const bool old = at.opset() < 11;
  std::vector<double> scales = numbers(at, upsample || old ? 1 : 2);
  std::vector<double> sizes;
  if (scales.empty() && !upsample) sizes = numbers(at, 3);
  std::vector<std::int64_t> axes = at.integers("axes");
  if (axes.empty()) {
    for (std::size_t i = 0; i < x.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  }
  const std::vector<double>& given = scales.empty() ? sizes : scales;
  if (given.size() != axes.size()) at.fail("has another number of scales or sizes than axes");
  std::vector<Axis> result;
  for (const std::int64_t extent : x) result.push_back({extent, extent, 1});
  const std::string policy = at.text("keep_aspect_ratio_policy", "stretch");
  double common = policy == "not_larger" ? std::numeric_limits<double>::infinity() : 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Axis& axis = result[at.axis(axes[i], x.size())];
    const auto in = static_cast<double>(axis.in);
    axis.scale = scales.empty() ? given[i] / in : given[i];
    const double out = scales.empty() ? given[i] : std::floor(in * given[i]);
    if (!(axis.scale > 0) || !(out >= 1) || out > 1e9) at.fail("has a scale or size that is not positive");
    axis.out = static_cast<std::int64_t>(out);
    common = policy == "not_larger" ? std::min(common, axis.scale) : std::max(common, axis.scale);
  }
  if (policy != "stretch" && scales.empty()) {
    for (const std::int64_t given_axis : axes) {
      Axis& axis = result[at.axis(given_axis, x.size())];
      axis.scale = common;
      axis.out = static_cast<std::int64_t>(std::floor(static_cast<double>(axis.in) * common + 0.5));
    }
  }
  return result;
}

/// By whole factors of the spatial axes there is a layer of its own.
bool by_upsample(Importer& at, const Rule& rule, const std::vector<Axis>& axes, Extents& factor) {
  if (axes.size() < 3 || axes.size() > 5 || axes[0].in != axes[0].out || axes[1].in != axes[1].out)
    return false;
  const bool linear = rule.mode == "linear" && !rule.antialias && rule.coordinates == "half_pixel";
  const bool nearest = rule.mode == "nearest" &&
                       ((rule.coordinates == "asymmetric" && rule.nearest == "floor") ||
                        (rule.coordinates == "half_pixel" && rule.nearest.starts_with("round_prefer")));
  if (!linear && !nearest) return false;
  for (std::size_t i = 2; i < axes.size(); ++i) {
    if (axes[i].out % axes[i].in != 0) return false;
    factor.push_back(axes[i].out / axes[i].in);
    if (axes[i].scale != static_cast<double>(factor.back())) return false;
  }
  return at.net().dtype(at.value(0)) == DType::f32;
}

void resize(Importer& at) {
  const Extents x = at.shape(0);
  const bool old = at.node().op_type == "Upsample" || at.opset() < 11;
  Rule rule;
  rule.mode = at.text("mode", "nearest");
  rule.coordinates = at.text("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  rule.nearest = at.text("nearest_mode", old ? "floor" : "round_prefer_floor");
  rule.cubic = at.real("cubic_coeff_a", -0.75F);
  rule.exclude_outside = at.integer("exclude_outside", 0) != 0;
  rule.antialias = at.integer("antialias", 0) != 0;
  if (rule.mode != "nearest" && rule.mode != "linear" && rule.mode != "cubic")
    at.fail("resizes by mode " + rule.mode + ", which is not supported");
  const std::vector<Axis> axes = resized_axes(at, x);
  Extents factor, dims;
  for (const Axis& axis : axes) dims.push_back(axis.out);
  if (by_upsample(at, rule, axes, factor))
    return at.set(0, at.net().upsample(at.value(0), factor, rule.mode == "linear", at.layer()));
  const ElementType type = at.type(0);
  if (!is_floating(type) && rule.mode != "nearest") at.fail("resizes integers, which is not supported");
  Value y = at.real_value(0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].in != axes[i].out || axes[i].scale != 1) y = resize_axis(at, y, i, rule, axes[i]);
  }
  at.set(0, y, dims, type);
}

}  // namespace

const OpTable& resize_ops() {
  static const OpTable table{{"Resize", resize}, {"Upsample", resize}};
  return table;
}

}  // namespace penstock::onnx
