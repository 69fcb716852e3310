#include <algorithm>

#include "kernels/reference/families.h"
#include "kernels/reference/space.h"

namespace penstock::kernels::reference {
namespace {

/// How a kernel moves over the large side of a convolution and makes the small one; a transposed convolution
/// is the same the other way round. Weights are [small channels, large channels / groups, kernel...].
struct Correlation {
  Correlation(const ir::Shape& large_shape, const ir::Shape& small_shape, const ir::Shape& weights,
              const ir::ConvAttrs& attrs)
      : batch(large_shape[0]),
        groups(attrs.groups),
        large_channels(large_shape[1] / attrs.groups),
        small_channels(small_shape[1] / attrs.groups),
        large(space_of(large_shape)),
        small(space_of(small_shape)),
        kernel(space_of(weights)),
        stride(triple(attrs.stride, 1)),
        dilation(triple(attrs.dilation, 1)),
        padding(triple(attrs.padding_begin, 0)) {}

  std::int64_t large_plane(std::int64_t n, std::int64_t group, std::int64_t channel) const {
    return ((n * groups + group) * large_channels + channel) * volume(large);
  }
  std::int64_t small_plane(std::int64_t n, std::int64_t group, std::int64_t channel) const {
    return ((n * groups + group) * small_channels + channel) * volume(small);
  }
  std::int64_t weight(std::int64_t group, std::int64_t small_channel, std::int64_t large_channel,
                      const Triple& k) const {
    return ((group * small_channels + small_channel) * large_channels + large_channel) * volume(kernel) +
           offset(kernel, k);
  }
  /// Where the kernel's element k lies on the large side when it makes element p of the small side.
  Triple large_position(const Triple& p, const Triple& k) const {
    Triple result{};
    for (std::size_t i = 0; i < 3; ++i) result[i] = p[i] * stride[i] - padding[i] + k[i] * dilation[i];
    return result;
  }
  /// The element of the small side that reads position p through k; false if there is none.
  bool small_position(const Triple& p, const Triple& k, Triple& result) const {
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t shifted = p[i] + padding[i] - k[i] * dilation[i];
      if (shifted < 0 || shifted % stride[i] != 0) return false;
      result[i] = shifted / stride[i];
    }
    return inside(small, result);
  }

  std::int64_t batch, groups, large_channels, small_channels;  ///< channels of one group
  Triple large, small, kernel, stride, dilation, padding;
};

float finished(double sum, const float* bias, std::int64_t channel, bool relu) {
  if (bias != nullptr) sum += bias[channel];
  return static_cast<float>(relu ? std::max(sum, 0.0) : sum);
}

void make_small(const Correlation& c, const float* large, const float* weights, const float* bias, bool relu,
                float* small) {
  for (std::int64_t n = 0; n < c.batch; ++n) {
    for (std::int64_t g = 0; g < c.groups; ++g) {
      for (std::int64_t s = 0; s < c.small_channels; ++s) {
        float* plane = small + c.small_plane(n, g, s);
        for_each_position(c.small, [&](const Triple& p) {
          double sum = 0;
          for (std::int64_t l = 0; l < c.large_channels; ++l) {
            for_each_position(c.kernel, [&](const Triple& k) {
              const Triple q = c.large_position(p, k);
              if (!inside(c.large, q)) return;
              sum += static_cast<double>(large[c.large_plane(n, g, l) + offset(c.large, q)]) *
                     weights[c.weight(g, s, l, k)];
            });
          }
          plane[offset(c.small, p)] = finished(sum, bias, g * c.small_channels + s, relu);
        });
      }
    }
  }
}

void make_large(const Correlation& c, const float* small, const float* weights, const float* bias, bool relu,
                float* large) {
  for (std::int64_t n = 0; n < c.batch; ++n) {
    for (std::int64_t g = 0; g < c.groups; ++g) {
      for (std::int64_t l = 0; l < c.large_channels; ++l) {
        float* plane = large + c.large_plane(n, g, l);
        for_each_position(c.large, [&](const Triple& p) {
          double sum = 0;
          for (std::int64_t s = 0; s < c.small_channels; ++s) {
            for_each_position(c.kernel, [&](const Triple& k) {
              Triple q{};
              if (!c.small_position(p, k, q)) return;
              sum += static_cast<double>(small[c.small_plane(n, g, s) + offset(c.small, q)]) *
                     weights[c.weight(g, s, l, k)];
            });
          }
          plane[offset(c.large, p)] = finished(sum, bias, g * c.large_channels + l, relu);
        });
      }
    }
  }
}

void make_weights(const Correlation& c, const float* large, const float* small, float* weights) {
  for (std::int64_t g = 0; g < c.groups; ++g) {
    for (std::int64_t s = 0; s < c.small_channels; ++s) {
      for (std::int64_t l = 0; l < c.large_channels; ++l) {
        for_each_position(c.kernel, [&](const Triple& k) {
          double sum = 0;
          for (std::int64_t n = 0; n < c.batch; ++n) {
            for_each_position(c.small, [&](const Triple& p) {
              const Triple q = c.large_position(p, k);
              if (!inside(c.large, q)) return;
              sum += static_cast<double>(large[c.large_plane(n, g, l) + offset(c.large, q)]) *
                     small[c.small_plane(n, g, s) + offset(c.small, p)];
            });
          }
          weights[c.weight(g, s, l, k)] = static_cast<float>(sum);
        });
      }
    }
  }
}

void sum_channels(const ir::Shape& shape, const float* dy, float* db) {
  const std::int64_t plane = shape.elements(2, shape.rank());
  for (std::int64_t c = 0; c < shape[1]; ++c) {
    double sum = 0;
    for (std::int64_t n = 0; n < shape[0]; ++n) {
      for (std::int64_t i = 0; i < plane; ++i) sum += dy[(n * shape[1] + c) * plane + i];
    }
    db[c] = static_cast<float>(sum);
  }
}

}  // namespace

Body conv(const Described& d) {
  const Correlation c(d.in[0], d.out[0], d.in[1], d.attrs<ir::ConvAttrs>());
  const bool relu = d.attrs<ir::ConvAttrs>().relu;
  return [=](const KernelArgs& args) {
    const float* bias = args.inputs.size() > 2 ? floats_in(args, 2) : nullptr;
    make_small(c, floats_in(args, 0), floats_in(args, 1), bias, relu, floats_out(args, 0));
  };
}

Body conv_backward_data(const Described& d) {
  const Correlation c(d.out[0], d.in[0], d.in[1], d.attrs<ir::ConvAttrs>());
  return [=](const KernelArgs& args) {
    make_large(c, floats_in(args, 0), floats_in(args, 1), nullptr, false, floats_out(args, 0));
  };
}

Body conv_backward_weights(const Described& d) {
  const Correlation c(d.in[0], d.in[1], d.out[0], d.attrs<ir::ConvAttrs>());
  return [c, shape = d.in[1]](const KernelArgs& args) {
    make_weights(c, floats_in(args, 0), floats_in(args, 1), floats_out(args, 0));
    if (args.outputs.size() > 1) sum_channels(shape, floats_in(args, 1), floats_out(args, 1));
  };
}

Body conv_transpose(const Described& d) {
  const Correlation c(d.out[0], d.in[0], d.in[1], d.attrs<ir::ConvAttrs>());
  const bool relu = d.attrs<ir::ConvAttrs>().relu;
  return [=](const KernelArgs& args) {
    const float* bias = args.inputs.size() > 2 ? floats_in(args, 2) : nullptr;
    make_large(c, floats_in(args, 0), floats_in(args, 1), bias, relu, floats_out(args, 0));
  };
}

Body conv_transpose_backward_data(const Described& d) {
  const Correlation c(d.in[0], d.out[0], d.in[1], d.attrs<ir::ConvAttrs>());
  return [=](const KernelArgs& args) {
    make_small(c, floats_in(args, 0), floats_in(args, 1), nullptr, false, floats_out(args, 0));
  };
}

Body conv_transpose_backward_weights(const Described& d) {
  const Correlation c(d.in[1], d.in[0], d.out[0], d.attrs<ir::ConvAttrs>());
  return [c, shape = d.in[1]](const KernelArgs& args) {
    make_weights(c, floats_in(args, 1), floats_in(args, 0), floats_out(args, 0));
    if (args.outputs.size() > 1) sum_channels(shape, floats_in(args, 1), floats_out(args, 1));
  };
}

}  // namespace penstock::kernels::reference
