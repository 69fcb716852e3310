#include "kernels/native/conv_kernels.h"

#include <omp.h>

#include <algorithm>

#include "kernels/native/channel_view.h"
#include "kernels/native/simd/table.h"

namespace penstock::kernels::native {

bool has_conv_kernels() {
  return simd().has_fma;
}

std::shared_ptr<const Kernel> make_conv_backward_weights(const ConvShape& shape, bool bias) {
  const int threads = omp_get_max_threads();
  const std::int64_t own = gradient_scratch_bytes(shape);
  const ChannelView view{shape.images, shape.out_blocks, shape.out_positions(), 8, shape.out_blocks * 8};
  const std::int64_t sums = bias ? view.rows() * view.block * static_cast<std::int64_t>(sizeof(double)) : 0;
  return make_kernel(
      [shape, threads, own, view](const KernelArgs& args) {
        ConvGradient conv;
        conv.shape = shape;
        conv.x = floats_in(args, 0);
        conv.dy = floats_in(args, 1);
        conv.dw = floats_out(args, 0);
        conv.scratch = args.scratch;
        conv.scratch_bytes = own;
        conv.threads = threads;
        simd().conv_gradient(conv);
        if (args.outputs.size() > 1) {
          simd().channel_sums(view, conv.dy, static_cast<double*>(args.scratch), floats_out(args, 1));
        }
      },
      {}, std::max(threads * own, sums));
}

}  // namespace penstock::kernels::native
