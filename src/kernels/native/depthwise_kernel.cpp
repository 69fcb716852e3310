#include <omp.h>

#include "kernels/native/conv_kernels.h"
#include "kernels/native/simd/program_table.h"

namespace penstock::kernels::native {

std::shared_ptr<const Kernel> make_depthwise_backward_weights(const DepthwiseGradient& shape, bool bias) {
  DepthwiseGradient conv = shape;
  conv.threads = omp_get_max_threads();
  const std::int64_t scratch_bytes = conv.threads * depthwise_floats(conv) * 4;
  return make_kernel(
      [conv, bias](const KernelArgs& args) {
        DepthwiseGradient now = conv;
        now.x = floats_in(args, 0);
        now.dy = floats_in(args, 1);
        now.dw = floats_out(args, 0);
        now.db = bias ? floats_out(args, 1) : nullptr;
        now.sums = static_cast<float*>(args.scratch);
        program_simd().depthwise_gradient(now);
      },
      {}, scratch_bytes);
}

}  // namespace penstock::kernels::native
