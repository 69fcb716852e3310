#include <algorithm>
#include <limits>

#include "kernels/reference/families.h"
#include "kernels/reference/space.h"

namespace penstock::kernels::reference {
namespace {

/// Windows over the planes of x, one per element of y.
struct Windows {
  Windows(const ir::Shape& x, const ir::Shape& y, const ir::PoolAttrs& attrs)
      : planes(x[0] * x[1]),
        in(space_of(x)),
        out(space_of(y)),
        kernel(triple(attrs.kernel, 1)),
        stride(triple(attrs.stride, 1)),
        padding(triple(attrs.padding_begin, 0)),
        include_pad(attrs.count_include_pad) {}

  /// Calls visit(offset in x's plane) for each element of window p that is not padding.
  template <typename Visit>
  void for_each_element(const Triple& p, Visit&& visit) const {
    for_each_position(kernel, [&](const Triple& k) {
      Triple q{};
      for (std::size_t i = 0; i < 3; ++i) q[i] = p[i] * stride[i] - padding[i] + k[i];
      if (inside(in, q)) visit(offset(in, q));
    });
  }
  /// What an average over window p divides by.
  std::int64_t divisor(const Triple& p) const {
    if (include_pad) return volume(kernel);
    std::int64_t count = 0;
    for_each_element(p, [&](std::int64_t) { ++count; });
    return count;
  }

  std::int64_t planes;
  Triple in, out, kernel, stride, padding;
  bool include_pad;
};

}  // namespace

Body max_pool(const Described& d) {
  return [w = Windows(d.in[0], d.out[0], d.attrs<ir::PoolAttrs>())](const KernelArgs& args) {
    for (std::int64_t plane = 0; plane < w.planes; ++plane) {
      const float* x = floats_in(args, 0) + plane * volume(w.in);
      for_each_position(w.out, [&](const Triple& p) {
        float largest = -std::numeric_limits<float>::infinity();
        std::int64_t index = -1;
        w.for_each_element(p, [&](std::int64_t i) {
          if (index >= 0 && !(x[i] > largest)) return;
          largest = x[i];
          index = i;
        });
        const std::int64_t at = plane * volume(w.out) + offset(w.out, p);
        floats_out(args, 0)[at] = largest;
        if (args.outputs.size() > 1)
          static_cast<std::int32_t*>(args.outputs[1])[at] = static_cast<std::int32_t>(index);
      });
    }
  };
}

Body max_pool_backward(const Described& d) {
  return [w = Windows(d.out[0], d.in[0], d.attrs<ir::PoolAttrs>())](const KernelArgs& args) {
    std::fill_n(floats_out(args, 0), w.planes * volume(w.in), 0.0F);
    for (std::int64_t plane = 0; plane < w.planes; ++plane) {
      const float* dy = floats_in(args, 0) + plane * volume(w.out);
      const auto* indices = static_cast<const std::int32_t*>(args.inputs[1]) + plane * volume(w.out);
      float* dx = floats_out(args, 0) + plane * volume(w.in);
      for (std::int64_t i = 0; i < volume(w.out); ++i) dx[indices[i]] += dy[i];
    }
  };
}

Body avg_pool(const Described& d) {
  return [w = Windows(d.in[0], d.out[0], d.attrs<ir::PoolAttrs>())](const KernelArgs& args) {
    for (std::int64_t plane = 0; plane < w.planes; ++plane) {
      const float* x = floats_in(args, 0) + plane * volume(w.in);
      float* y = floats_out(args, 0) + plane * volume(w.out);
      for_each_position(w.out, [&](const Triple& p) {
        double sum = 0;
        w.for_each_element(p, [&](std::int64_t i) { sum += x[i]; });
        y[offset(w.out, p)] = static_cast<float>(sum / static_cast<double>(w.divisor(p)));
      });
    }
  };
}

Body avg_pool_backward(const Described& d) {
  return [w = Windows(d.out[0], d.in[0], d.attrs<ir::PoolAttrs>())](const KernelArgs& args) {
    std::fill_n(floats_out(args, 0), w.planes * volume(w.in), 0.0F);
    for (std::int64_t plane = 0; plane < w.planes; ++plane) {
      const float* dy = floats_in(args, 0) + plane * volume(w.out);
      float* dx = floats_out(args, 0) + plane * volume(w.in);
      for_each_position(w.out, [&](const Triple& p) {
        const float share = dy[offset(w.out, p)] / static_cast<float>(w.divisor(p));
        w.for_each_element(p, [&](std::int64_t i) { dx[i] += share; });
      });
    }
  };
}

Body global_avg_pool(const Described& d) {
  const std::int64_t planes = d.out[0].elements();
  return [planes, plane = d.in[0].elements() / planes](const KernelArgs& args) {
    for (std::int64_t p = 0; p < planes; ++p) {
      double sum = 0;
      for (std::int64_t i = 0; i < plane; ++i) sum += floats_in(args, 0)[p * plane + i];
      floats_out(args, 0)[p] = static_cast<float>(sum / static_cast<double>(plane));
    }
  };
}

Body global_avg_pool_backward(const Described& d) {
  const std::int64_t planes = d.in[0].elements();
  return [planes, plane = d.out[0].elements() / planes](const KernelArgs& args) {
    for (std::int64_t i = 0; i < planes * plane; ++i) {
      floats_out(args, 0)[i] = floats_in(args, 0)[i / plane] / static_cast<float>(plane);
    }
  };
}

}  // namespace penstock::kernels::reference
