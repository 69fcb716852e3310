#include <omp.h>

#include <algorithm>

#include "kernels/native/channel_view.h"
#include "kernels/native/conv_kernels.h"
#include "kernels/native/simd/table.h"
#include "kernels/native/wide_table.h"

namespace penstock::kernels::native {

namespace {

/// Images are summed in so many parts, whatever the threads: the bits are the same for any number of them.
constexpr std::int64_t kParts = 8;

std::shared_ptr<const Kernel> make_grouped(const GroupedShape& shape, bool turned, bool relu) {
  GroupedConv conv;
  conv.shape = shape;
  conv.turned = turned;
  conv.relu = relu;
  conv.threads = omp_get_max_threads();
  const std::int64_t scratch_bytes = (shape.weight_floats() + conv.threads * shape.rows_floats()) * 4;
  return make_kernel(
      [conv](const KernelArgs& args) {
        GroupedConv run = conv;
        run.x = floats_in(args, 0);
        run.weights = floats_in(args, 1);
        run.bias = floats_in(args, 2);
        run.y = floats_out(args, 0);
        run.packed = static_cast<float*>(args.scratch);
        run.rows = run.packed + run.shape.weight_floats();
        wide()->grouped_conv(run);
      },
      {}, scratch_bytes);
}

}  // namespace

std::shared_ptr<const Kernel> make_grouped_conv(const GroupedShape& shape, bool relu) {
  return make_grouped(shape, false, relu);
}

std::shared_ptr<const Kernel> make_grouped_backward_data(const GroupedShape& shape) {
  GroupedShape turned = shape;
  std::swap(turned.in_height, turned.out_height);
  std::swap(turned.in_width, turned.out_width);
  std::swap(turned.stride_height, turned.spread_height);
  std::swap(turned.stride_width, turned.spread_width);
  turned.top = shape.kernel_height - 1 - shape.top;
  turned.left = shape.kernel_width - 1 - shape.left;
  return make_grouped(turned, true, false);
}

std::shared_ptr<const Kernel> make_grouped_backward_weights(const GroupedShape& shape, bool bias) {
  GroupedGradient conv;
  conv.shape = shape;
  conv.parts = std::min(kParts, shape.images);
  conv.threads = omp_get_max_threads();
  const ChannelView view{shape.images, shape.blocks, shape.out_height * shape.out_width, GroupedShape::kBlock,
                         shape.blocks * GroupedShape::kBlock};
  const std::int64_t own_bytes =
      4 * (conv.parts * shape.weight_floats() + conv.threads * GroupedGradient::gradient_rows_floats(shape));
  const std::int64_t bias_bytes =
      bias ? view.rows() * view.block * static_cast<std::int64_t>(sizeof(double)) : 0;
  return make_kernel(
      [conv, view](const KernelArgs& args) {
        GroupedGradient run = conv;
        run.x = floats_in(args, 0);
        run.dy = floats_in(args, 1);
        run.dw = floats_out(args, 0);
        run.sums = static_cast<float*>(args.scratch);
        run.rows = run.sums + run.parts * run.shape.weight_floats();
        wide()->grouped_gradient(run);
        if (args.outputs.size() > 1) {
          simd().channel_sums(view, run.dy, static_cast<double*>(args.scratch), floats_out(args, 1));
        }
      },
      {}, std::max(own_bytes, bias_bytes));
}

}  // namespace penstock::kernels::native
