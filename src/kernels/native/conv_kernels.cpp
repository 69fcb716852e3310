#include "kernels/native/conv_kernels.h"

#include <omp.h>

#include <algorithm>

#include "kernels/native/channel_view.h"
#include "kernels/native/simd/table.h"
#include "kernels/native/wide_table.h"

namespace penstock::kernels::native {

namespace {

const WinogradTable& winograd() {
  return wide() != nullptr ? wide()->winograd : simd().winograd;
}

}  // namespace

bool has_conv_kernels() {
  return simd().has_fma;
}

std::int64_t winograd_lanes() {
  return winograd().lanes;
}

namespace {

/// Tiles at a time: as many as keep a thread's scratch near two megabytes, in whole groups.
std::int64_t block_tiles(const ConvShape& shape) {
  constexpr std::int64_t kFloats = std::int64_t{3} << 18;
  const std::int64_t per_tile = 16 * shape.lanes * (shape.in_blocks + shape.out_blocks);
  const std::int64_t group = winograd().group_tiles;
  return std::clamp<std::int64_t>(kFloats / per_tile / group * group, 24 / group * group, 96 / group * group);
}

ChannelView gradient_view(const ConvShape& shape) {
  return {shape.images, shape.out_blocks, shape.out_positions(), shape.lanes, shape.out_blocks * shape.lanes};
}

std::int64_t sums_bytes(const ChannelView& view) {
  return view.rows() * view.block * static_cast<std::int64_t>(sizeof(double));
}

std::shared_ptr<const Kernel> make_winograd(const ConvShape& shape, bool turned, bool relu) {
  WinogradConv conv;
  conv.shape = shape;
  conv.turned = turned;
  conv.relu = relu;
  conv.threads = omp_get_max_threads();
  conv.block_tiles = block_tiles(shape);
  conv.scratch_floats = winograd().thread_floats(shape, conv.block_tiles);
  const std::int64_t weights = winograd().weight_floats(shape);
  const std::int64_t scratch_bytes = (weights + conv.threads * conv.scratch_floats) * 4;
  return make_kernel(
      [conv, weights](const KernelArgs& args) {
        WinogradConv run = conv;
        run.x = floats_in(args, 0);
        run.weights = floats_in(args, 1);
        run.bias = floats_in(args, 2);
        run.y = floats_out(args, 0);
        run.transformed = static_cast<float*>(args.scratch);
        run.scratch = run.transformed + weights;
        winograd().conv(run);
      },
      {}, scratch_bytes);
}

}  // namespace

bool suits_winograd(const ConvShape& shape) {
  const ConvShape::Axes ones{1, 1, 1};
  const bool fits = shape.kernel == ConvShape::Axes{1, 3, 3} && shape.stride == ones &&
                    shape.dilation == ones && shape.in[0] == 1 && shape.padding[1] <= 2 &&
                    shape.padding[2] <= 2;
  if (!fits) return false;
  // Cycles of either way: two products of vectors each; a transformed tile takes some forty a block.
  // Transformed weights, 64 bytes each, are written and read at some sixteen bytes a cycle: much where images
  // are few and small.
  const auto in = static_cast<double>(shape.in_blocks);
  const auto out = static_cast<double>(shape.out_blocks);
  const auto lanes = static_cast<double>(shape.lanes);
  const std::int64_t tile_rows = (shape.out[1] + 1) / 2;
  const std::int64_t tile_columns = (shape.out[2] + 1) / 2;
  const auto tiles = static_cast<double>(shape.images * tile_rows * tile_columns);
  const double products = in * out * lanes / 2;
  const double direct = static_cast<double>(shape.images * shape.out_positions()) * 9 * products;
  const double weights = in * out * lanes * lanes * 8;
  const double winograd = tiles * (16 * products + 40 * (in + out)) + weights;
  return winograd < 0.9 * direct;
}

std::shared_ptr<const Kernel> make_winograd_conv(const ConvShape& shape, bool relu) {
  return make_winograd(shape, false, relu);
}

std::shared_ptr<const Kernel> make_winograd_backward_data(const ConvShape& shape) {
  ConvShape turned = shape;
  std::swap(turned.in_blocks, turned.out_blocks);
  std::swap(turned.in, turned.out);
  turned.padding = {0, 2 - shape.padding[1], 2 - shape.padding[2]};
  return make_winograd(turned, true, false);
}

std::shared_ptr<const Kernel> make_winograd_backward_weights(const ConvShape& shape, bool bias) {
  WinogradGradient conv;
  conv.shape = shape;
  // Eight megabytes of transformed tiles at a time.
  constexpr std::int64_t kFloats = std::int64_t{1} << 21;
  conv.block_tiles =
      std::clamp<std::int64_t>(kFloats / (16 * shape.lanes * (shape.in_blocks + shape.out_blocks)), 48, 192);
  const ChannelView view = gradient_view(shape);
  const std::int64_t scratch_bytes =
      std::max(winograd().gradient_floats(shape, conv.block_tiles) * 4, bias ? sums_bytes(view) : 0);
  return make_kernel(
      [conv, view](const KernelArgs& args) {
        WinogradGradient run = conv;
        run.x = floats_in(args, 0);
        run.dy = floats_in(args, 1);
        run.dw = floats_out(args, 0);
        run.scratch = static_cast<float*>(args.scratch);
        winograd().gradient(run);
        if (args.outputs.size() > 1) {
          simd().channel_sums(view, run.dy, static_cast<double*>(args.scratch), floats_out(args, 1));
        }
      },
      {}, scratch_bytes);
}

std::shared_ptr<const Kernel> make_conv_backward_weights(const ConvShape& shape, bool bias) {
  const int threads = omp_get_max_threads();
  const std::int64_t own = gradient_scratch_bytes(shape);
  const ChannelView view = gradient_view(shape);
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
      {}, std::max(threads * own, bias ? sums_bytes(view) : 0));
}

}  // namespace penstock::kernels::native
