#include "kernels/reference/families.h"

namespace penstock::kernels::reference {
namespace {

/// Log-probabilities [N, classes, inner].
struct Places {
  std::int64_t outer, classes, inner;
  ir::NllAttrs attrs;

  Places(const ir::Shape& shape, const ir::NllAttrs& nll)
      : outer(shape[0]), classes(shape[1]), inner(shape.elements(2, shape.rank())), attrs(nll) {}

  bool counts(std::int32_t label) const { return label >= 0 && label < classes && label != attrs.ignored; }
  std::int64_t element(std::int64_t place, std::int64_t k) const {
    return (place / inner * classes + k) * inner + place % inner;
  }
  /// What a log-probability is multiplied by in the sum of all places' losses, with its sign turned.
  double factor(std::int32_t label, std::int64_t k, const float* weights) const {
    const double weight = weights != nullptr ? weights[k] : 1;
    return weight * ((k == label ? 1 - static_cast<double>(attrs.smoothing) : 0) +
                     static_cast<double>(attrs.smoothing) / static_cast<double>(classes));
  }
};

}  // namespace

Body nll_loss(const Described& d) {
  return [places = Places(d.in[0], d.attrs<ir::NllAttrs>()),
          weighted = d.in.size() > 2](const KernelArgs& args) {
    const auto* labels = static_cast<const std::int32_t*>(args.inputs[1]);
    const float* weights = weighted ? floats_in(args, 2) : nullptr;
    double loss = 0;
    double total = 0;
    for (std::int64_t p = 0; p < places.outer * places.inner; ++p) {
      if (!places.counts(labels[p])) continue;
      total += weights != nullptr ? weights[labels[p]] : 1;
      for (std::int64_t k = 0; k < places.classes; ++k)
        loss -= places.factor(labels[p], k, weights) * floats_in(args, 0)[places.element(p, k)];
    }
    floats_out(args, 0)[0] = static_cast<float>(total > 0 ? loss / total : 0);
    floats_out(args, 1)[0] = static_cast<float>(total);
  };
}

Body nll_loss_backward(const Described& d) {
  return [places = Places(d.out[0], d.attrs<ir::NllAttrs>()),
          weighted = d.in.size() > 3](const KernelArgs& args) {
    const auto* labels = static_cast<const std::int32_t*>(args.inputs[0]);
    const float* weights = weighted ? floats_in(args, 3) : nullptr;
    const double total = floats_in(args, 1)[0];
    const double scale = total > 0 ? -floats_in(args, 2)[0] / total : 0;
    for (std::int64_t p = 0; p < places.outer * places.inner; ++p) {
      for (std::int64_t k = 0; k < places.classes; ++k) {
        const double factor = places.counts(labels[p]) ? places.factor(labels[p], k, weights) : 0;
        floats_out(args, 0)[places.element(p, k)] = static_cast<float>(scale * factor);
      }
    }
  };
}

}  // namespace penstock::kernels::reference
