#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace penstock::lower {

/// Where the elements of a tensor lie in the plain memory of another, its base, that it was made of by
/// reshapes, transposes and slices alone. Walking the tensor in row-major order walks the axes as nested
/// loops, the last one innermost. Axes need not be those of the tensor's shape: a reshape changes none.
class TensorView {
 public:
  struct Axis {
    std::int64_t extent = 1, stride = 1;
    bool operator==(const Axis&) const = default;
  };

  /// All of a base of so many elements, in order.
  static TensorView whole(ir::TensorId base, std::int64_t elements);
  /// Axes in this order, from `offset` on.
  TensorView(ir::TensorId base, const std::vector<Axis>& axes, std::int64_t offset = 0);

  ir::TensorId base() const { return base_; }
  std::int64_t offset() const { return offset_; }
  std::int64_t elements() const;
  /// Each element of a base of so many, in order.
  bool is_whole(std::int64_t base_elements) const;
  /// The same elements of the same base in the same order.
  bool operator==(const TensorView&) const = default;

  // What is made of this view, whose tensor has `shape`. None where no loops over the base tell it.
  std::optional<TensorView> transposed(const ir::Shape& shape, std::span<const std::int64_t> order) const;
  /// Elements [begin, begin + count) of one axis.
  std::optional<TensorView> sliced(const ir::Shape& shape, std::size_t axis, std::int64_t begin,
                                   std::int64_t count) const;
  /// Where each row of `width` elements lies in one piece, at a multiple of `width`: the same rows in a base
  /// whose rows have `new_width`.
  std::optional<TensorView> with_rows(std::int64_t width, ir::TensorId new_base,
                                      std::int64_t new_width) const;

 private:
  /// The axes that make up each axis of the shape; some are cut in two.
  std::optional<std::vector<std::vector<Axis>>> by_axis(const std::vector<std::int64_t>& extents) const;

  ir::TensorId base_;
  std::int64_t offset_;
  std::vector<Axis> axes_;  ///< none of extent 1, no two neighbours that are one
};

}  // namespace penstock::lower
