#include <algorithm>
#include <cmath>

#include "kernels/native/simd/text_table.h"
#include "kernels/native/text_kernels.h"

namespace penstock::kernels::native {
namespace {

GateFunction function_of(const ir::GateAttrs& attrs) {
  switch (attrs.function) {
    case ir::Gate::silu:
      return GateFunction::silu;
    case ir::Gate::gelu:
      return GateFunction::gelu;
    case ir::Gate::gelu_tanh:
      return GateFunction::gelu_tanh;
  }
  return GateFunction::silu;
}

/// Elements whose squares are summed at a stretch.
constexpr std::int64_t kStretch = 65536;

std::int64_t stretches_of(std::int64_t count) {
  return (count + kStretch - 1) / kStretch;
}

}  // namespace

std::shared_ptr<const Kernel> make_row_norm(const ir::LayerNormAttrs& attrs, const ir::Shape& x) {
  const std::size_t last = x.rank() - 1;
  const std::int64_t rows = x.elements(0, last);
  const std::int64_t width = x[last];
  const std::size_t z = attrs.rms ? 2 : 3;
  const std::size_t variance = attrs.rms ? 1 : 2;
  return make_kernel(
      [=](const KernelArgs& args) {
        RowNorm norm;
        norm.rows = rows;
        norm.width = width;
        norm.x = floats_in(args, 0);
        norm.gamma = floats_in(args, 1);
        norm.beta = attrs.rms ? nullptr : floats_in(args, 2);
        norm.z = attrs.add ? floats_in(args, z) : nullptr;
        norm.y = floats_out(args, 0);
        norm.mean = attrs.rms ? nullptr : floats_out(args, 1);
        norm.variance = floats_out(args, variance);
        norm.sum = attrs.add ? floats_out(args, variance + 1) : nullptr;
        norm.epsilon = attrs.epsilon;
        text_simd().row_norm(norm);
      },
      attrs.add ? Overwrites{{variance + 1, 0}, {variance + 1, z}, {0, 0}, {0, z}} : Overwrites{{0, 0}});
}

std::shared_ptr<const Kernel> make_row_norm_backward(const ir::LayerNormAttrs& attrs, const ir::Shape& x) {
  const std::size_t last = x.rank() - 1;
  const std::int64_t rows = x.elements(0, last);
  const std::int64_t width = x[last];
  const std::size_t variance = attrs.rms ? 3 : 4;
  Overwrites overwrites{{0, 0}, {0, 1}};
  if (attrs.add) overwrites.emplace_back(0, variance + 1);
  return make_kernel(
      [=](const KernelArgs& args) {
        RowNormBackward norm;
        norm.rows = rows;
        norm.width = width;
        norm.x = floats_in(args, 0);
        norm.dy = floats_in(args, 1);
        norm.gamma = floats_in(args, 2);
        norm.mean = attrs.rms ? nullptr : floats_in(args, 3);
        norm.variance = floats_in(args, variance);
        norm.dsum = attrs.add ? floats_in(args, variance + 1) : nullptr;
        norm.dx = floats_out(args, 0);
        norm.dgamma = floats_out(args, 1);
        norm.dbeta = attrs.rms ? nullptr : floats_out(args, 2);
        norm.partial = static_cast<float*>(args.scratch);
        norm.epsilon = attrs.epsilon;
        text_simd().row_norm_backward(norm);
      },
      std::move(overwrites), row_norm_partial_floats(rows, width) * 4);
}

std::shared_ptr<const Kernel> make_gate(const ir::GateAttrs& attrs, std::int64_t count, bool gated) {
  const GateFunction function = function_of(attrs);
  return make_kernel(
      [=](const KernelArgs& args) {
        if (gated) {
          text_simd().gate(function, count, floats_in(args, 0), floats_in(args, 1), floats_out(args, 0));
        } else {
          text_simd().gelu(function, count, floats_in(args, 0), floats_out(args, 0));
        }
      },
      {{0, 0}, {0, 1}});
}

std::shared_ptr<const Kernel> make_gate_backward(const ir::GateAttrs& attrs, std::int64_t count, bool gated) {
  const GateFunction function = function_of(attrs);
  return make_kernel(
      [=](const KernelArgs& args) {
        if (gated) {
          text_simd().gate_backward(function, count, floats_in(args, 0), floats_in(args, 1),
                                    floats_in(args, 2), floats_out(args, 0), floats_out(args, 1));
        } else {
          text_simd().gelu_backward(function, count, floats_in(args, 0), floats_in(args, 1),
                                    floats_out(args, 0));
        }
      },
      gated ? Overwrites{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}} : Overwrites{{0, 0}, {0, 1}});
}

std::shared_ptr<const Kernel> make_sum_squares(const ShapeList& in) {
  std::vector<std::int64_t> counts;
  std::int64_t most = 0;
  for (const ir::Shape& shape : in) {
    counts.push_back(shape.elements());
    most = std::max(most, stretches_of(shape.elements()));
  }
  return make_kernel(
      [counts](const KernelArgs& args) {
        auto* sums = static_cast<double*>(args.scratch);
        double total = 0;
        for (std::size_t i = 0; i < counts.size(); ++i) {
          const float* values = floats_in(args, i);
          const std::int64_t stretches = stretches_of(counts[i]);
#pragma omp parallel for schedule(static)
          for (std::int64_t part = 0; part < stretches; ++part) {
            const std::int64_t end = std::min(counts[i], (part + 1) * kStretch);
            double lanes[8] = {};
            std::int64_t at = part * kStretch;
            for (; at + 8 <= end; at += 8) {
              for (std::int64_t lane = 0; lane < 8; ++lane) {
                const double value = values[at + lane];
                lanes[lane] += value * value;
              }
            }
            for (; at < end; ++at) lanes[0] += static_cast<double>(values[at]) * values[at];
            sums[part] = ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
                         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
          }
          for (std::int64_t part = 0; part < stretches; ++part) total += sums[part];
        }
        floats_out(args, 0)[0] = static_cast<float>(total);
      },
      {}, most * static_cast<std::int64_t>(sizeof(double)));
}

std::shared_ptr<const Kernel> make_clip_scale(const ir::ClipAttrs& attrs, std::size_t count) {
  return make_kernel([=](const KernelArgs& args) {
    double total = 0;
    for (std::size_t i = 0; i < count; ++i) total += floats_in(args, i)[0];
    const double norm = std::sqrt(static_cast<double>(attrs.weight) * total);
    // As PyTorch's clip_grad_norm_: a norm of 0 clips nothing.
    const double scale = attrs.norm / (norm + 1e-6);
    floats_out(args, 0)[0] = static_cast<float>(scale > 1 ? 1 : scale);
    floats_out(args, 1)[0] = static_cast<float>(norm);
  });
}

}  // namespace penstock::kernels::native
