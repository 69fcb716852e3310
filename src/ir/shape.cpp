#include "ir/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/interned.h"

namespace penstock::ir {
namespace {

struct HashDims {
  std::size_t operator()(const std::vector<std::int64_t>& dims) const {
    std::size_t hash = dims.size();
    for (const std::int64_t extent : dims) hash = hash * 1000003 + static_cast<std::size_t>(extent);
    return hash;
  }
};

}  // namespace

Shape::Shape(std::vector<std::int64_t> dims)
    : dims_(interned<std::vector<std::int64_t>, HashDims>(std::move(dims))) {}

void Shape::set(std::size_t axis, std::int64_t extent) {
  std::vector<std::int64_t> dims = *dims_;
  dims[axis] = extent;
  *this = Shape(std::move(dims));
}

std::int64_t Shape::elements() const {
  return elements(0, rank());
}

std::int64_t Shape::elements(std::size_t first, std::size_t last) const {
  std::int64_t product = 1;
  for (std::size_t axis = first; axis < last; ++axis) product *= (*dims_)[axis];
  return product;
}

std::string Shape::to_string() const {
  return fmt::format("[{}]", fmt::join(*dims_, ", "));
}

}  // namespace penstock::ir
