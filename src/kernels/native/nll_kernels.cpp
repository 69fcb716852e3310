#include "kernels/native/nll_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace penstock::kernels::native {
namespace {

/// Places whose losses are summed by one thread at a time: sums do not depend on the number of threads.
constexpr std::int64_t kStretch = 256;

struct Places {
  std::int64_t count, classes, inner;
  ir::NllAttrs attrs;

  Places(const ir::Shape& shape, const ir::NllAttrs& nll)
      : count(shape.elements() / shape[1]),
        classes(shape[1]),
        inner(shape.elements(2, shape.rank())),
        attrs(nll) {}

  std::int64_t stretches() const { return (count + kStretch - 1) / kStretch; }
  bool counts(std::int32_t label) const { return label >= 0 && label != attrs.ignored; }
  /// The first class of a place; the others are `inner` apart.
  std::int64_t first(std::int64_t place) const { return place / inner * classes * inner + place % inner; }

  void check(const std::int32_t* labels) const {
    for (std::int64_t p = 0; p < count; ++p) {
      if (!counts(labels[p]) || labels[p] < classes) continue;
      throw RunError(fmt::format("label {} at place {} is not one of the {} classes", labels[p], p, classes));
    }
  }
};

double weight_of(const float* weights, std::int64_t k) {
  return weights != nullptr ? weights[k] : 1;
}

}  // namespace

std::shared_ptr<const Kernel> make_nll_loss(const ir::Shape& shape, const ir::NllAttrs& attrs) {
  const Places places(shape, attrs);
  const std::int64_t scratch_bytes = 2 * places.stretches() * static_cast<std::int64_t>(sizeof(double));
  return make_kernel(
      [places](const KernelArgs& args) {
        const float* x = floats_in(args, 0);
        const auto* labels = static_cast<const std::int32_t*>(args.inputs[1]);
        const float* weights = floats_in(args, 2);
        auto* partial = static_cast<double*>(args.scratch);
        places.check(labels);
        const double spread = places.attrs.smoothing;
        const double each = spread / static_cast<double>(places.classes);
#pragma omp parallel for schedule(static)
        for (std::int64_t s = 0; s < places.stretches(); ++s) {
          double loss = 0;
          double total = 0;
          for (std::int64_t p = s * kStretch; p < std::min((s + 1) * kStretch, places.count); ++p) {
            if (!places.counts(labels[p])) continue;
            const float* from = x + places.first(p);
            const double weight = weight_of(weights, labels[p]);
            total += weight;
            loss -= (1 - spread) * weight * from[labels[p] * places.inner];
            if (spread == 0) continue;
            double sum = 0;
            for (std::int64_t k = 0; k < places.classes; ++k)
              sum += weight_of(weights, k) * from[k * places.inner];
            loss -= each * sum;
          }
          partial[2 * s] = loss;
          partial[2 * s + 1] = total;
        }
        double loss = 0;
        double total = 0;
        for (std::int64_t s = 0; s < places.stretches(); ++s) {
          loss += partial[2 * s];
          total += partial[2 * s + 1];
        }
        // Where no place counts there is nothing to learn.
        floats_out(args, 0)[0] = static_cast<float>(total > 0 ? loss / total : 0);
        floats_out(args, 1)[0] = static_cast<float>(total);
      },
      {}, scratch_bytes);
}

std::shared_ptr<const Kernel> make_nll_loss_backward(const ir::Shape& shape, const ir::NllAttrs& attrs) {
  return make_kernel([places = Places(shape, attrs)](const KernelArgs& args) {
    const auto* labels = static_cast<const std::int32_t*>(args.inputs[0]);
    const double total = floats_in(args, 1)[0];
    const float* weights = floats_in(args, 3);
    float* dx = floats_out(args, 0);
    places.check(labels);
    const double scale = total > 0 ? -floats_in(args, 2)[0] / total : 0;
    const double each = scale * places.attrs.smoothing / static_cast<double>(places.classes);
#pragma omp parallel for schedule(static)
    for (std::int64_t p = 0; p < places.count; ++p) {
      float* to = dx + places.first(p);
      const bool counts = places.counts(labels[p]);
      for (std::int64_t k = 0; k < places.classes; ++k)
        to[k * places.inner] = counts ? static_cast<float>(each * weight_of(weights, k)) : 0;
      if (!counts) continue;
      const double weight = weight_of(weights, labels[p]);
      to[labels[p] * places.inner] =
          static_cast<float>((scale * (1 - static_cast<double>(places.attrs.smoothing)) + each) * weight);
    }
  });
}

}  // namespace penstock::kernels::native
