#include <algorithm>
#include <cmath>

#include "kernels/reference/families.h"
#include "kernels/reference/space.h"

namespace penstock::kernels::reference {
namespace {

struct Scaling {
  Scaling(const ir::Shape& x, const ir::UpsampleAttrs& attrs)
      : planes(x[0] * x[1]), in(space_of(x)), factor(triple(attrs.factor, 1)), linear(attrs.bilinear) {
    for (std::size_t i = 0; i < 3; ++i) out[i] = in[i] * factor[i];
  }

  /// How much input element `from` counts in output element `to` along an axis.
  double share(std::size_t axis, std::int64_t from, std::int64_t to) const {
    if (!linear) return to / factor[axis] == from ? 1 : 0;
    const double place =
        std::max(0.0, (static_cast<double>(to) + 0.5) / static_cast<double>(factor[axis]) - 0.5);
    const auto low = static_cast<std::int64_t>(std::floor(place));
    const std::int64_t high = std::min(low + 1, in[axis] - 1);
    const double part = place - static_cast<double>(low);
    return (from == low ? 1 - part : 0) + (from == high ? part : 0);
  }
  double share(const Triple& from, const Triple& to) const {
    return share(0, from[0], to[0]) * share(1, from[1], to[1]) * share(2, from[2], to[2]);
  }

  /// Calls visit(position) for each position of `extents` between the two, ends included.
  template <typename Visit>
  static void for_each_between(const Triple& extents, Triple first, Triple last, Visit&& visit) {
    Triple count{};
    for (std::size_t i = 0; i < 3; ++i) {
      first[i] = std::max<std::int64_t>(first[i], 0);
      count[i] = std::min(last[i], extents[i] - 1) - first[i] + 1;
    }
    for_each_position(count, [&](const Triple& p) {
      visit(Triple{first[0] + p[0], first[1] + p[1], first[2] + p[2]});
    });
  }
  /// The inputs that may count in output p.
  template <typename Visit>
  void for_each_source(const Triple& p, Visit&& visit) const {
    const Triple q{p[0] / factor[0], p[1] / factor[1], p[2] / factor[2]};
    for_each_between(in, {q[0] - 1, q[1] - 1, q[2] - 1}, {q[0] + 1, q[1] + 1, q[2] + 1}, visit);
  }
  /// The outputs in which input p may count.
  template <typename Visit>
  void for_each_target(const Triple& p, Visit&& visit) const {
    Triple first{};
    Triple last{};
    for (std::size_t i = 0; i < 3; ++i) {
      first[i] = (p[i] - 1) * factor[i];
      last[i] = (p[i] + 2) * factor[i] - 1;
    }
    for_each_between(out, first, last, visit);
  }

  std::int64_t planes;
  Triple in, out{}, factor;
  bool linear;
};

}  // namespace

Body upsample(const Described& d) {
  return [s = Scaling(d.in[0], d.attrs<ir::UpsampleAttrs>())](const KernelArgs& args) {
    for (std::int64_t plane = 0; plane < s.planes; ++plane) {
      const float* x = floats_in(args, 0) + plane * volume(s.in);
      float* y = floats_out(args, 0) + plane * volume(s.out);
      for_each_position(s.out, [&](const Triple& p) {
        double sum = 0;
        s.for_each_source(p, [&](const Triple& q) { sum += s.share(q, p) * x[offset(s.in, q)]; });
        y[offset(s.out, p)] = static_cast<float>(sum);
      });
    }
  };
}

Body upsample_backward(const Described& d) {
  return [s = Scaling(d.out[0], d.attrs<ir::UpsampleAttrs>())](const KernelArgs& args) {
    for (std::int64_t plane = 0; plane < s.planes; ++plane) {
      const float* dy = floats_in(args, 0) + plane * volume(s.out);
      float* dx = floats_out(args, 0) + plane * volume(s.in);
      for_each_position(s.in, [&](const Triple& p) {
        double sum = 0;
        s.for_each_target(p, [&](const Triple& q) { sum += s.share(p, q) * dy[offset(s.out, q)]; });
        dx[offset(s.in, p)] = static_cast<float>(sum);
      });
    }
  };
}

}  // namespace penstock::kernels::reference
