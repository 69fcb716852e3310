#include "kernels/native/wide/loops.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {

const WideTable& wide_table();

const WideTable& wide_table() {
  static constexpr WideTable kTable{grouped_conv, grouped_gradient};
  return kTable;
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
