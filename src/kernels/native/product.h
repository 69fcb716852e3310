#pragma once

#include <cstdint>

namespace penstock::kernels::native {

/// A matrix in memory: element (i, j) lies at data[i * row + j * column]; one of the two steps is 1.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t row = 0;
  std::int64_t column = 1;
};

/// c[m, n] = scale * a[m, k] b[k, n] (+ bias[n]) (+ c), c's rows `c_row` floats apart. Each element of c is
/// summed in an order that k alone decides, so the result does not depend on threads, m or n.
struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  MatrixView a, b;
  float* c = nullptr;
  std::int64_t c_row = 0;
  const float* bias = nullptr;  ///< null: none
  float scale = 1;
  bool add = false;          ///< to what c holds
  bool relu = false;         ///< of the result
  float* scratch = nullptr;  ///< product_floats()
};

/// Terms that are summed at a stretch, from zero, before they are added to c: k in even parts of at most
/// this.
inline constexpr std::int64_t kProductTerms = 320;

}  // namespace penstock::kernels::native
