#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ir/shape.h"

namespace penstock::kernels::reference {

/// One value for each of three spatial axes; fewer axes have their values last.
using Triple = std::array<std::int64_t, 3>;

inline Triple triple(const std::vector<std::int64_t>& values, std::int64_t missing) {
  Triple result{missing, missing, missing};
  for (std::size_t i = 0; i < values.size(); ++i) result[3 - values.size() + i] = values[i];
  return result;
}

/// The spatial extents of [N, C, ...].
inline Triple space_of(const ir::Shape& shape) {
  return triple({shape.dims().begin() + 2, shape.dims().end()}, 1);
}

inline std::int64_t volume(const Triple& extents) {
  return extents[0] * extents[1] * extents[2];
}

inline std::int64_t offset(const Triple& extents, const Triple& position) {
  return (position[0] * extents[1] + position[1]) * extents[2] + position[2];
}

inline bool inside(const Triple& extents, const Triple& position) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (position[axis] < 0 || position[axis] >= extents[axis]) return false;
  }
  return true;
}

/// Calls visit(position) for every position in row-major order.
template <typename Visit>
void for_each_position(const Triple& extents, Visit&& visit) {
  Triple p{};
  for (p[0] = 0; p[0] < extents[0]; ++p[0]) {
    for (p[1] = 0; p[1] < extents[1]; ++p[1]) {
      for (p[2] = 0; p[2] < extents[2]; ++p[2]) visit(p);
    }
  }
}

}  // namespace penstock::kernels::reference
