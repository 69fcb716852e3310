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

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

/// The gradient at the norm's output, from that behind the ReLU or SiLU that follows it.
class Gradient {
 public:
  /// `mean` and `mask`: their places without SiLU; with it, beta stands behind gamma, at 3.
  Gradient(const KernelArgs& args, const ir::NormAttrs& attrs, std::size_t mean, std::size_t mask)
      : x_(floats_in(args, 0)),
        dy_(floats_in(args, 1)),
        gamma_(attrs.silu ? floats_in(args, 2) : nullptr),
        beta_(attrs.silu ? floats_in(args, 3) : nullptr),
        mean_(floats_in(args, attrs.silu ? 4 : mean)),
        variance_(floats_in(args, attrs.silu ? 5 : mean + 1)),
        mask_(attrs.mask ? static_cast<const std::uint8_t*>(args.inputs[mask]) : nullptr),
        epsilon_(attrs.epsilon) {}

  double scale(std::int64_t channel) const {
    return 1 / std::sqrt(static_cast<double>(variance_[channel]) + epsilon_);
  }
  /// x without mean and deviation.
  double normed(std::int64_t channel, std::int64_t i) const {
    return (x_[i] - static_cast<double>(mean_[channel])) * scale(channel);
  }
  double operator()(std::int64_t channel, std::int64_t i) const {
    if (mask_ != nullptr && mask_[i] == 0) return 0;
    if (beta_ == nullptr) return dy_[i];
    const double v = normed(channel, i) * gamma_[channel] + beta_[channel];
    return dy_[i] * sigmoid(v) * (1 + v * (1 - sigmoid(v)));
  }

 private:
  const float *x_, *dy_, *gamma_, *beta_, *mean_, *variance_;
  const std::uint8_t* mask_;
  double epsilon_;
};

struct ChannelSums {
  double dgamma = 0, dbeta = 0;
};

ChannelSums sums_of(const Channels& c, std::int64_t channel, const Gradient& gradient) {
  ChannelSums sums;
  c.for_each(channel, [&](std::int64_t i) {
    sums.dgamma += gradient(channel, i) * gradient.normed(channel, i);
    sums.dbeta += gradient(channel, i);
  });
  return sums;
}

/// dx, and dz where something was added, of `count` elements a channel.
void write_data(const Channels& c, std::int64_t channel, const Gradient& gradient, const ChannelSums& sums,
                double gamma, double count, float* dx, float* dz) {
  c.for_each(channel, [&](std::int64_t i) {
    const double g = gradient(channel, i);
    const double normed = gradient.normed(channel, i);
    dx[i] = static_cast<float>(gamma * gradient.scale(channel) *
                               (g - sums.dbeta / count - normed * sums.dgamma / count));
    if (dz != nullptr) dz[i] = static_cast<float>(g);
  });
}

/// dz alone, perhaps over dy.
void write_residual(const Channels& c, std::int64_t channel, const Gradient& gradient, float* dz) {
  c.for_each(channel, [&](std::int64_t i) { dz[i] = static_cast<float>(gradient(channel, i)); });
}

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
        if (attrs.silu) value *= sigmoid(value);
        y[i] = static_cast<float>(value);
      });
    }
  };
}

Body batch_norm_backward(const Described& d) {
  return [c = Channels(d.in[0]), attrs = d.attrs<ir::NormAttrs>()](const KernelArgs& args) {
    const Gradient gradient(args, attrs, 3, 5);
    float* dz = attrs.add ? floats_out(args, 3) : nullptr;
    for (std::int64_t channel = 0; channel < c.channels; ++channel) {
      const ChannelSums sums = sums_of(c, channel, gradient);
      write_data(c, channel, gradient, sums, floats_in(args, 2)[channel], static_cast<double>(c.count()),
                 floats_out(args, 0), dz);
      floats_out(args, 1)[channel] = static_cast<float>(sums.dgamma);
      floats_out(args, 2)[channel] = static_cast<float>(sums.dbeta);
    }
  };
}

Body batch_norm_backward_sums(const Described& d) {
  return [c = Channels(d.in[0]), attrs = d.attrs<ir::NormAttrs>()](const KernelArgs& args) {
    const Gradient gradient(args, attrs, 2, 4);
    for (std::int64_t channel = 0; channel < c.channels; ++channel) {
      const ChannelSums sums = sums_of(c, channel, gradient);
      if (attrs.add) write_residual(c, channel, gradient, floats_out(args, 2));
      floats_out(args, 0)[channel] = static_cast<float>(sums.dgamma);
      floats_out(args, 1)[channel] = static_cast<float>(sums.dbeta);
    }
  };
}

Body batch_norm_backward_data(const Described& d) {
  return [c = Channels(d.in[0]), attrs = d.attrs<ir::NormAttrs>()](const KernelArgs& args) {
    const Gradient gradient(args, attrs, 3, 7);
    const std::size_t sums = attrs.silu ? 6 : 5;
    for (std::int64_t channel = 0; channel < c.channels; ++channel) {
      const ChannelSums whole{floats_in(args, sums)[channel], floats_in(args, sums + 1)[channel]};
      write_data(c, channel, gradient, whole, floats_in(args, 2)[channel], static_cast<double>(attrs.count),
                 floats_out(args, 0), nullptr);
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
