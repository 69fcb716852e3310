#include <algorithm>
#include <cmath>

#include "kernels/reference/families.h"

namespace penstock::kernels::reference {
namespace {

/// [N, C, ...] seen channel by channel.
struct Channels {
  explicit Channels(const ir::Shape& shape)
      : batch(shape[0]), channels(shape[1]), plane(shape.elements(2, shape.rank())) {}

  std::int64_t count() const { return batch * plane; }
  /// Calls visit(index) for each element of the channel.
  template <typename Visit>
  void for_each(std::int64_t channel, Visit&& visit) const {
    for (std::int64_t n = 0; n < batch; ++n) {
      for (std::int64_t i = 0; i < plane; ++i) visit((n * channels + channel) * plane + i);
    }
  }

  std::int64_t batch, channels, plane;
};

}  // namespace

Body batch_norm_statistics(const Described& d) {
  return [c = Channels(d.in[0])](const KernelArgs& args) {
    const float* x = floats_in(args, 0);
    for (std::int64_t channel = 0; channel < c.channels; ++channel) {
      double sum = 0;
      c.for_each(channel, [&](std::int64_t i) { sum += x[i]; });
      const double mean = sum / static_cast<double>(c.count());
      double squares = 0;
      c.for_each(channel, [&](std::int64_t i) { squares += (x[i] - mean) * (x[i] - mean); });
      floats_out(args, 0)[channel] = static_cast<float>(mean);
      floats_out(args, 1)[channel] = static_cast<float>(squares / static_cast<double>(c.count()));
    }
  };
}

Body batch_norm(const Described& d) {
  return [c = Channels(d.in[0]), attrs = d.attrs<ir::NormAttrs>()](const KernelArgs& args) {
    const float* x = floats_in(args, 0);
    const float* z = attrs.add ? floats_in(args, 5) : nullptr;
    float* y = floats_out(args, 0);
    auto* mask = attrs.mask ? static_cast<std::uint8_t*>(args.outputs[1]) : nullptr;
    for (std::int64_t channel = 0; channel < c.channels; ++channel) {
      const double gamma = floats_in(args, 1)[channel];
      const double beta = floats_in(args, 2)[channel];
      const double mean = floats_in(args, 3)[channel];
      const double scale = 1 / std::sqrt(static_cast<double>(floats_in(args, 4)[channel]) + attrs.epsilon);
      c.for_each(channel, [&](std::int64_t i) {
        double value = (x[i] - mean) * scale * gamma + beta;
        if (z != nullptr) value += z[i];
        if (mask != nullptr) mask[i] = value > 0 && (attrs.ceiling == 0 || value < attrs.ceiling) ? 1 : 0;
        if (attrs.relu) value = std::max(value, 0.0);
        if (attrs.ceiling > 0) value = std::min(value, static_cast<double>(attrs.ceiling));
        y[i] = static_cast<float>(value);
      });
    }
  };
}

Body batch_norm_backward(const Described& d) {
  return [c = Channels(d.in[0]), attrs = d.attrs<ir::NormAttrs>()](const KernelArgs& args) {
    const float* x = floats_in(args, 0);
    const float* dy = floats_in(args, 1);
    const auto* mask = attrs.mask ? static_cast<const std::uint8_t*>(args.inputs[5]) : nullptr;
    float* dx = floats_out(args, 0);
    float* dz = attrs.add ? floats_out(args, 3) : nullptr;
    const auto count = static_cast<double>(c.count());
    const auto masked = [&](std::int64_t i) { return mask != nullptr && mask[i] == 0 ? 0.0F : dy[i]; };
    for (std::int64_t channel = 0; channel < c.channels; ++channel) {
      const double gamma = floats_in(args, 2)[channel];
      const double mean = floats_in(args, 3)[channel];
      const double scale = 1 / std::sqrt(static_cast<double>(floats_in(args, 4)[channel]) + attrs.epsilon);
      double dgamma = 0;
      double dbeta = 0;
      c.for_each(channel, [&](std::int64_t i) {
        dgamma += masked(i) * (x[i] - mean) * scale;
        dbeta += masked(i);
      });
      c.for_each(channel, [&](std::int64_t i) {
        const float gradient = masked(i);
        const double normed = (x[i] - mean) * scale;
        dx[i] = static_cast<float>(gamma * scale * (gradient - dbeta / count - normed * dgamma / count));
        if (dz != nullptr) dz[i] = gradient;
      });
      floats_out(args, 1)[channel] = static_cast<float>(dgamma);
      floats_out(args, 2)[channel] = static_cast<float>(dbeta);
    }
  };
}

Body batch_norm_backward_sums(const Described& d) {
  return [c = Channels(d.in[0]), attrs = d.attrs<ir::NormAttrs>()](const KernelArgs& args) {
    const float* x = floats_in(args, 0);
    const float* dy = floats_in(args, 1);
    const auto* mask = attrs.mask ? static_cast<const std::uint8_t*>(args.inputs[4]) : nullptr;
    for (std::int64_t channel = 0; channel < c.channels; ++channel) {
      const double mean = floats_in(args, 2)[channel];
      const double scale = 1 / std::sqrt(static_cast<double>(floats_in(args, 3)[channel]) + attrs.epsilon);
      double dgamma = 0;
      double dbeta = 0;
      c.for_each(channel, [&](std::int64_t i) {
        if (mask != nullptr && mask[i] == 0) return;
        dgamma += dy[i] * (x[i] - mean) * scale;
        dbeta += dy[i];
      });
      floats_out(args, 0)[channel] = static_cast<float>(dgamma);
      floats_out(args, 1)[channel] = static_cast<float>(dbeta);
    }
  };
}

Body batch_norm_backward_data(const Described& d) {
  return [c = Channels(d.in[0]), attrs = d.attrs<ir::NormAttrs>()](const KernelArgs& args) {
    const float* x = floats_in(args, 0);
    const float* dy = floats_in(args, 1);
    const auto* mask = attrs.mask ? static_cast<const std::uint8_t*>(args.inputs[7]) : nullptr;
    float* dx = floats_out(args, 0);
    float* dz = attrs.add ? floats_out(args, 1) : nullptr;
    const auto count = static_cast<double>(attrs.count);
    for (std::int64_t channel = 0; channel < c.channels; ++channel) {
      const double gamma = floats_in(args, 2)[channel];
      const double mean = floats_in(args, 3)[channel];
      const double scale = 1 / std::sqrt(static_cast<double>(floats_in(args, 4)[channel]) + attrs.epsilon);
      const double dgamma = floats_in(args, 5)[channel];
      const double dbeta = floats_in(args, 6)[channel];
      c.for_each(channel, [&](std::int64_t i) {
        const float gradient = mask != nullptr && mask[i] == 0 ? 0.0F : dy[i];
        const double normed = (x[i] - mean) * scale;
        dx[i] = static_cast<float>(gamma * scale * (gradient - dbeta / count - normed * dgamma / count));
        if (dz != nullptr) dz[i] = gradient;
      });
    }
  };
}

Body combine_statistics(const Described& d) {
  return
      [channels = d.in[0].elements(), counts = d.attrs<ir::CombineAttrs>().counts](const KernelArgs& args) {
        for (std::int64_t c = 0; c < channels; ++c) {
          // E[x^2] of the whole is that of the slices, weighted.
          double count = 0, sum = 0, squares = 0;
          for (std::size_t k = 0; k < counts.size(); ++k) {
            const auto n = static_cast<double>(counts[k]);
            const double mean = floats_in(args, 2 * k)[c];
            count += n;
            sum += n * mean;
            squares += n * (floats_in(args, 2 * k + 1)[c] + mean * mean);
          }
          const double mean = sum / count;
          floats_out(args, 0)[c] = static_cast<float>(mean);
          floats_out(args, 1)[c] = static_cast<float>(squares / count - mean * mean);
        }
      };
}

Body statistics_update(const Described& d) {
  return [channels = d.in[0].elements(), attrs = d.attrs<ir::StatisticsAttrs>()](const KernelArgs& args) {
    const double momentum = attrs.momentum;
    // A single element has no unbiased variance; PyTorch refuses it, here the biased one is kept.
    const double unbias =
        attrs.count > 1 ? static_cast<double>(attrs.count) / static_cast<double>(attrs.count - 1) : 1.0;
    for (std::int64_t c = 0; c < channels; ++c) {
      const double mean = floats_in(args, 2)[c];
      const double variance = floats_in(args, 3)[c] * unbias;
      floats_out(args, 0)[c] = static_cast<float>((1 - momentum) * floats_in(args, 0)[c] + momentum * mean);
      floats_out(args, 1)[c] =
          static_cast<float>((1 - momentum) * floats_in(args, 1)[c] + momentum * variance);
    }
  };
}

}  // namespace penstock::kernels::reference
