#include "ir/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace penstock::ir {

std::int64_t Shape::elements() const {
  return elements(0, rank());
}

std::int64_t Shape::elements(std::size_t first, std::size_t last) const {
  std::int64_t product = 1;
  for (std::size_t axis = first; axis < last; ++axis) product *= dims_[axis];
  return product;
}

std::string Shape::to_string() const {
  return fmt::format("[{}]", fmt::join(dims_, ", "));
}

}  // namespace penstock::ir
