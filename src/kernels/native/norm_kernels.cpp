#include "kernels/native/norm_kernels.h"

#include "kernels/native/simd/table.h"

namespace penstock::kernels::native {
namespace {

std::int64_t partial_bytes(const ChannelView& view) {
  return 2 * view.rows() * view.block * static_cast<std::int64_t>(sizeof(double));
}

}  // namespace

std::shared_ptr<const Kernel> make_norm_statistics(const ChannelView& view) {
  return make_kernel(
      [view](const KernelArgs& args) {
        simd().norm_statistics(view, floats_in(args, 0), static_cast<double*>(args.scratch),
                               floats_out(args, 0), floats_out(args, 1));
      },
      {}, partial_bytes(view));
}

std::shared_ptr<const Kernel> make_norm_forward(const ChannelView& view, const ir::NormAttrs& attrs) {
  return make_kernel(
      [view, attrs](const KernelArgs& args) {
        NormForward norm;
        norm.view = view;
        norm.x = floats_in(args, 0);
        norm.gamma = floats_in(args, 1);
        norm.beta = floats_in(args, 2);
        norm.mean = floats_in(args, 3);
        norm.variance = floats_in(args, 4);
        norm.z = attrs.add ? floats_in(args, 5) : nullptr;
        norm.y = floats_out(args, 0);
        norm.mask = attrs.relu && attrs.mask ? static_cast<std::uint8_t*>(args.outputs[1]) : nullptr;
        norm.epsilon = attrs.epsilon;
        norm.relu = attrs.relu;
        norm.ceiling = attrs.ceiling;
        norm.silu = attrs.silu;
        simd().norm_forward(norm);
      },
      {{0, 0}, {0, 5}});
}

namespace {

/// What the gradient and its two halves have alike: x, dy, (gamma), mean and variance from input `mean` on,
/// and, where the ReLU has one, its mask. With SiLU beta stands behind gamma in all three.
NormBackward backward_of(const ChannelView& view, const ir::NormAttrs& attrs, const KernelArgs& args,
                         std::size_t mean, std::size_t mask) {
  if (attrs.silu) mean = 4;
  NormBackward norm;
  norm.view = view;
  norm.x = floats_in(args, 0);
  norm.dy = floats_in(args, 1);
  if (mean > 2) norm.gamma = floats_in(args, 2);
  if (attrs.silu) norm.beta = floats_in(args, 3);
  norm.mean = floats_in(args, mean);
  norm.variance = floats_in(args, mean + 1);
  norm.mask = attrs.mask ? static_cast<const std::uint8_t*>(args.inputs[mask]) : nullptr;
  norm.partial = static_cast<double*>(args.scratch);
  norm.epsilon = attrs.epsilon;
  return norm;
}

}  // namespace

std::shared_ptr<const Kernel> make_norm_backward(const ChannelView& view, const ir::NormAttrs& attrs) {
  return make_kernel(
      [view, attrs](const KernelArgs& args) {
        NormBackward norm = backward_of(view, attrs, args, 3, 5);
        norm.dx = floats_out(args, 0);
        norm.dgamma = floats_out(args, 1);
        norm.dbeta = floats_out(args, 2);
        norm.dz = attrs.add ? floats_out(args, 3) : nullptr;
        simd().norm_backward(norm);
      },
      {{0, 0}, {0, 1}, {3, 1}}, partial_bytes(view));
}

std::shared_ptr<const Kernel> make_norm_backward_sums(const ChannelView& view, const ir::NormAttrs& attrs) {
  return make_kernel(
      [view, attrs](const KernelArgs& args) {
        NormBackward norm = backward_of(view, attrs, args, 2, 4);
        norm.dgamma = floats_out(args, 0);
        norm.dbeta = floats_out(args, 1);
        norm.dz = attrs.add ? floats_out(args, 2) : nullptr;
        simd().norm_backward_sums(norm);
      },
      {{2, 1}}, partial_bytes(view));
}

std::shared_ptr<const Kernel> make_norm_backward_data(const ChannelView& view, const ir::NormAttrs& attrs) {
  return make_kernel(
      [view, attrs](const KernelArgs& args) {
        NormBackward norm = backward_of(view, attrs, args, 3, 7);
        const std::size_t sums = attrs.silu ? 6 : 5;
        norm.whole_dgamma = floats_in(args, sums);
        norm.whole_dbeta = floats_in(args, sums + 1);
        norm.dx = floats_out(args, 0);
        norm.count = attrs.count;
        simd().norm_backward_data(norm);
      },
      {{0, 0}, {0, 1}});
}

std::shared_ptr<const Kernel> make_combine_statistics(std::int64_t channels, const ir::CombineAttrs& attrs) {
  return make_kernel([channels, counts = attrs.counts](const KernelArgs& args) {
    double count = 0;
    for (const std::int64_t each : counts) count += static_cast<double>(each);
    for (std::int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (std::size_t k = 0; k < counts.size(); ++k)
        sum += static_cast<double>(counts[k]) * static_cast<double>(floats_in(args, 2 * k)[c]);
      const double mean = sum / count;
      double squares = 0;
      for (std::size_t k = 0; k < counts.size(); ++k) {
        const double apart = static_cast<double>(floats_in(args, 2 * k)[c]) - mean;
        squares += static_cast<double>(counts[k]) *
                   (static_cast<double>(floats_in(args, 2 * k + 1)[c]) + apart * apart);
      }
      floats_out(args, 0)[c] = static_cast<float>(mean);
      floats_out(args, 1)[c] = static_cast<float>(squares / count);
    }
  });
}

std::shared_ptr<const Kernel> make_statistics_update(std::int64_t channels,
                                                     const ir::StatisticsAttrs& attrs) {
  return make_kernel(
      [channels, attrs](const KernelArgs& args) {
        const auto count = static_cast<double>(attrs.count);
        const auto unbiased = static_cast<float>(attrs.count > 1 ? count / (count - 1) : 1);
        for (std::int64_t c = 0; c < channels; ++c) {
          floats_out(args, 0)[c] =
              (1 - attrs.momentum) * floats_in(args, 0)[c] + attrs.momentum * floats_in(args, 2)[c];
          floats_out(args, 1)[c] = (1 - attrs.momentum) * floats_in(args, 1)[c] +
                                   attrs.momentum * (floats_in(args, 3)[c] * unbiased);
        }
      },
      {{0, 0}, {1, 1}});
}

}  // namespace penstock::kernels::native
