#include "kernels/native/simd/winograd_table.h"

namespace penstock::kernels::native::PENSTOCK_SIMD {

const SimdTable& table();

namespace {
#if defined(__FMA__)
constexpr bool kHasFma = true;
#else
constexpr bool kHasFma = false;
#endif
}  // namespace

const SimdTable& table() {
  static constexpr SimdTable kTable{norm_statistics,
                                    norm_forward,
                                    norm_backward,
                                    norm_backward_sums,
                                    norm_backward_data,
                                    add_bias,
                                    channel_sums,
                                    global_average,
                                    global_average_backward,
                                    add,
                                    multiply,
                                    leaky_relu,
                                    leaky_relu_backward,
                                    sgd,
                                    adam,
                                    conv_gradient,
                                    kWinograd,
                                    kHasFma};
  return kTable;
}

}  // namespace penstock::kernels::native::PENSTOCK_SIMD
