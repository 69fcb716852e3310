#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace penstock::ir {

/// Logical extents of a tensor, outermost first: [N, C, H, W], [N, C, D, H, W], [N, K]. At most 6 dimensions.
/// All tensors of a shape share its extents.
class Shape {
 public:
  Shape() : Shape(std::vector<std::int64_t>()) {}
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::vector<std::int64_t>(dims)) {}
  explicit Shape(std::vector<std::int64_t> dims);

  std::size_t rank() const { return dims_->size(); }
  std::int64_t operator[](std::size_t axis) const { return (*dims_)[axis]; }
  void set(std::size_t axis, std::int64_t extent);
  const std::vector<std::int64_t>& dims() const { return *dims_; }
  std::int64_t elements() const;
  /// Product of the extents of axes [first, last).
  std::int64_t elements(std::size_t first, std::size_t last) const;
  /// "[16, 64, 56, 56]"
  std::string to_string() const;

  bool operator==(const Shape&) const = default;

 private:
  const std::vector<std::int64_t>* dims_;  ///< interned: equal shapes have the same
};

}  // namespace penstock::ir
