#pragma once

#include <cstdint>

#include "ir/attrs.h"

namespace penstock::kernels::native {

/// A reduction of x, whose dimensions are in the order of memory, without gaps.
struct ReduceRun {
  static constexpr int kMaxDims = 8;
  static constexpr std::int64_t kColumns = 256;  ///< outputs beside each other that are made together

  ir::Reduction function = ir::Reduction::sum;
  int dims = 0;
  std::int64_t extents[kMaxDims] = {};
  bool kept[kMaxDims] = {};
  std::int64_t out_strides[kMaxDims] = {};  ///< of kept dimensions
  std::int64_t outputs = 1;
  std::int64_t each = 1;  ///< elements that make one output
  /// Few outputs of many elements: the first reduced dimension is cut into so many parts, whose results are
  /// joined in order. It depends on the shape alone, so that the number of threads does not change the bits.
  std::int64_t parts = 1;

  const float* x = nullptr;
  float* y = nullptr;
  double* partial = nullptr;  ///< scratch: parts * outputs, where there are several parts
};

}  // namespace penstock::kernels::native
