#include <cmath>

#include "kernels/reference/families.h"

namespace penstock::kernels::reference {

namespace {

template <typename UpdateAttrs>
double gradient_scale(const KernelArgs& args, const UpdateAttrs& attrs) {
  const double scale = attrs.gradient_scale;
  return attrs.clipped ? scale * floats_in(args, args.inputs.size() - 1)[0] : scale;
}

}  // namespace

Body sgd_update(const Described& d) {
  const bool has_momentum = d.out.size() > 1;
  return [count = d.in[1].elements(), has_momentum, attrs = d.attrs<ir::SgdAttrs>()](const KernelArgs& args) {
    const float* parameters = floats_in(args, 0) + attrs.begin;
    float* updated = floats_out(args, 0) + attrs.begin;
    const double scale = gradient_scale(args, attrs);
    for (std::int64_t i = 0; i < count; ++i) {
      const double parameter = parameters[i];
      const double gradient = scale * floats_in(args, 1)[i] + attrs.weight_decay * parameter;
      double direction = gradient;
      if (has_momentum) {
        const double buffer = static_cast<double>(attrs.momentum) * floats_in(args, 2)[i] + gradient;
        direction = attrs.nesterov ? gradient + attrs.momentum * buffer : buffer;
        floats_out(args, 1)[i] = static_cast<float>(buffer);
      }
      updated[i] = static_cast<float>(parameter - args.step->learning_rate * direction);
    }
  };
}

Body adam_update(const Described& d) {
  return [count = d.in[1].elements(), attrs = d.attrs<ir::AdamAttrs>()](const KernelArgs& args) {
    const float* parameters = floats_in(args, 0) + attrs.begin;
    float* updated = floats_out(args, 0) + attrs.begin;
    const double scale = gradient_scale(args, attrs);
    const double beta1 = attrs.beta1;
    const double beta2 = attrs.beta2;
    const double rate = args.step->learning_rate;
    const auto t = static_cast<double>(args.step->step + 1);
    const double correction1 = 1 - std::pow(beta1, t);
    const double correction2 = std::sqrt(1 - std::pow(beta2, t));
    for (std::int64_t i = 0; i < count; ++i) {
      double parameter = parameters[i];
      double gradient = scale * floats_in(args, 1)[i];
      if (attrs.decoupled) {
        parameter *= 1 - rate * attrs.weight_decay;
      } else {
        gradient += attrs.weight_decay * parameter;
      }
      const double first = beta1 * floats_in(args, 2)[i] + (1 - beta1) * gradient;
      const double second = beta2 * floats_in(args, 3)[i] + (1 - beta2) * gradient * gradient;
      const double denominator = std::sqrt(second) / correction2 + attrs.epsilon;
      updated[i] = static_cast<float>(parameter - rate / correction1 * first / denominator);
      floats_out(args, 1)[i] = static_cast<float>(first);
      floats_out(args, 2)[i] = static_cast<float>(second);
    }
  };
}

}  // namespace penstock::kernels::reference
