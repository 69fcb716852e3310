#include "kernels/native/channel_kernels.h"

#include "kernels/native/simd/table.h"

namespace penstock::kernels::native {

std::shared_ptr<const Kernel> make_bias(const ChannelView& view) {
  return make_kernel(
      [view](const KernelArgs& args) {
        simd().add_bias(view, floats_in(args, 0), floats_in(args, 1), floats_out(args, 0));
      },
      {{0, 0}});
}

std::shared_ptr<const Kernel> make_bias_backward(const ChannelView& view) {
  return make_kernel(
      [view](const KernelArgs& args) {
        simd().channel_sums(view, floats_in(args, 0), static_cast<double*>(args.scratch),
                            floats_out(args, 0));
      },
      {}, view.rows() * view.block * static_cast<std::int64_t>(sizeof(double)));
}

std::shared_ptr<const Kernel> make_global_average(const ChannelView& view) {
  return make_kernel([view](const KernelArgs& args) {
    simd().global_average(view, floats_in(args, 0), floats_out(args, 0));
  });
}

std::shared_ptr<const Kernel> make_global_average_backward(const ChannelView& view) {
  return make_kernel([view](const KernelArgs& args) {
    simd().global_average_backward(view, floats_in(args, 0), floats_out(args, 0));
  });
}

}  // namespace penstock::kernels::native
