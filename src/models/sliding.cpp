#include "models/sliding.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace penstock {

namespace {

/// "2" for the same along all axes, "2x1" otherwise.
std::string brief(const std::vector<std::int64_t>& values) {
  const bool same = std::equal(values.begin() + 1, values.end(), values.begin());
  return same ? fmt::format("{}", values[0]) : extents_text(values);
}

}  // namespace

std::vector<std::int64_t> spatial(const std::string& layer, const char* what, const ir::Shape& x,
                                  const std::vector<std::int64_t>& given, std::int64_t smallest) {
  if (x.rank() < 3) {
    throw UserError(
        fmt::format("layer {} needs an input [N, C, ...] with spatial axes, not {}", layer, x.to_string()));
  }
  const std::size_t axes = x.rank() - 2;
  if (given.size() != 1 && given.size() != axes) {
    throw UserError(fmt::format("layer {}: {} has {} values for the {} spatial axes of {}; give 1 or {}",
                                layer, what, given.size(), axes, x.to_string(), axes));
  }
  for (const std::int64_t value : given) {
    if (value < smallest) {
      throw UserError(fmt::format("layer {}: {} {} is below {}", layer, what, value, smallest));
    }
  }
  return given.size() == axes ? given : std::vector<std::int64_t>(axes, given[0]);
}

void check_fits(const Sliding& sliding, const ir::Shape& x) {
  for (std::size_t i = 0; i < sliding.kernel.size(); ++i) {
    const std::int64_t reach = sliding.dilation[i] * (sliding.kernel[i] - 1) + 1;
    if (x[i + 2] + sliding.padding_begin[i] + sliding.padding_end[i] < reach) {
      throw TooSmallError(fmt::format("layer {} ({} {}, stride {}, padding {}) would get {}", sliding.layer,
                                      sliding.kind, extents_text(sliding.kernel), brief(sliding.stride),
                                      brief(sliding.padding_begin), extents_text(extents_of(x))));
    }
  }
}

std::string extents_text(const std::vector<std::int64_t>& extents) {
  return fmt::format("{}", fmt::join(extents, "x"));
}

std::vector<std::int64_t> extents_of(const ir::Shape& shape) {
  return {shape.dims().begin() + 2, shape.dims().end()};
}

}  // namespace penstock
