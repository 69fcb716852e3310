#include "kernels/native/simd/loops.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {

const SimdTable& table();

const SimdTable& table() {
  static constexpr SimdTable kTable{norm_statistics,
                                    norm_forward,
                                    norm_backward,
                                    add_bias,
                                    channel_sums,
                                    global_average,
                                    global_average_backward,
                                    add,
                                    multiply,
                                    leaky_relu,
                                    leaky_relu_backward,
                                    sgd,
                                    adam};
  return kTable;
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
