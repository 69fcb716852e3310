#include "lower/tensor_view.h"

#include <algorithm>

namespace penstock::lower {

TensorView TensorView::whole(ir::TensorId base, std::int64_t elements) {
  return {base, {{elements, 1}}};
}

TensorView::TensorView(ir::TensorId base, const std::vector<Axis>& axes, std::int64_t offset)
    : base_(base), offset_(offset) {
  for (const Axis& axis : axes) {
    if (axis.extent == 1) continue;
    if (!axes_.empty() && axes_.back().stride == axis.extent * axis.stride) {
      axes_.back() = {axes_.back().extent * axis.extent, axis.stride};
    } else {
      axes_.push_back(axis);
    }
  }
}

std::int64_t TensorView::elements() const {
  std::int64_t count = 1;
  for (const Axis& axis : axes_) count *= axis.extent;
  return count;
}

bool TensorView::is_whole(std::int64_t base_elements) const {
  return *this == whole(base_, base_elements);
}

std::optional<std::vector<std::vector<TensorView::Axis>>> TensorView::by_axis(
    const std::vector<std::int64_t>& extents) const {
  std::vector<std::vector<Axis>> groups(extents.size());
  std::vector<Axis> left(axes_.rbegin(), axes_.rend());  // The outermost is the last.
  for (std::size_t i = 0; i < extents.size(); ++i) {
    std::int64_t need = extents[i];
    while (need > 1) {
      if (left.empty()) return std::nullopt;
      Axis& next = left.back();
      if (need % next.extent == 0) {
        need /= next.extent;
        groups[i].push_back(next);
        left.pop_back();
      } else if (next.extent % need == 0) {
        next.extent /= need;
        groups[i].push_back({need, next.extent * next.stride});
        need = 1;
      } else {
        return std::nullopt;
      }
    }
  }
  return groups;
}

std::optional<TensorView> TensorView::transposed(const ir::Shape& shape,
                                                 std::span<const std::int64_t> order) const {
  const auto groups = by_axis(shape.dims());
  if (!groups) return std::nullopt;
  std::vector<Axis> axes;
  for (const std::int64_t from : order) {
    const auto& group = (*groups)[static_cast<std::size_t>(from)];
    axes.insert(axes.end(), group.begin(), group.end());
  }
  return TensorView(base_, axes, offset_);
}

std::optional<TensorView> TensorView::sliced(const ir::Shape& shape, std::size_t axis, std::int64_t begin,
                                             std::int64_t count) const {
  auto groups = by_axis(shape.dims());
  if (!groups) return std::nullopt;
  auto& cut = (*groups)[axis];
  const TensorView joined(base_, cut);
  if (joined.axes_.size() > 1) return std::nullopt;
  const std::int64_t stride = joined.axes_.empty() ? 0 : joined.axes_[0].stride;
  cut = {{count, stride}};
  std::vector<Axis> axes;
  for (const auto& group : *groups) axes.insert(axes.end(), group.begin(), group.end());
  return TensorView(base_, axes, offset_ + begin * stride);
}

std::optional<TensorView> TensorView::with_rows(std::int64_t width, ir::TensorId new_base,
                                                std::int64_t new_width) const {
  const auto groups = by_axis({elements() / width, width});
  if (!groups || elements() % width != 0 || offset_ % width != 0) return std::nullopt;
  if (TensorView(base_, (*groups)[1]) != whole(base_, width)) return std::nullopt;
  std::vector<Axis> axes;
  for (const Axis& axis : (*groups)[0]) {
    if (axis.stride % width != 0) return std::nullopt;
    axes.push_back({axis.extent, axis.stride / width * new_width});
  }
  axes.push_back({new_width, 1});
  return TensorView(new_base, axes, offset_ / width * new_width);
}

}  // namespace penstock::lower
