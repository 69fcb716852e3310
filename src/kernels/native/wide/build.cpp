#include "kernels/native/simd/winograd_table.h"
#include "kernels/native/wide/loops.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {

const WideTable& wide_table();

const WideTable& wide_table() {
  static constexpr WideTable kTable{
      grouped_conv,       grouped_gradient,          attention, attention_floats,
      attention_backward, attention_backward_floats, gelu,      gelu_backward,
      kWinograd};
  return kTable;
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
