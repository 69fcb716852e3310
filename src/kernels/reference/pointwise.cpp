#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/random.h"
#include "kernels/reference/families.h"

namespace penstock::kernels::reference {
namespace {

double normal_distribution(double x) {
  return 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
}

double normal_density(double x) {
  return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
}

double value(const ir::ActivationAttrs& attrs, double x) {
  switch (attrs.function) {
    case ir::Activation::relu:
      return x > 0 ? x : 0;
    case ir::Activation::leaky_relu:
      return x > 0 ? x : attrs.alpha * x;
    case ir::Activation::gelu:
      return x * normal_distribution(x);
    case ir::Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case ir::Activation::tanh:
      return std::tanh(x);
  }
  throw InternalError("not an activation");
}

/// From the input for gelu, from the result for the others.
double slope(const ir::ActivationAttrs& attrs, double saved) {
  switch (attrs.function) {
    case ir::Activation::relu:
      return saved > 0 ? 1 : 0;
    case ir::Activation::leaky_relu:
      return saved > 0 ? 1 : attrs.alpha;
    case ir::Activation::gelu:
      return normal_distribution(saved) + saved * normal_density(saved);
    case ir::Activation::sigmoid:
      return saved * (1 - saved);
    case ir::Activation::tanh:
      return 1 - saved * saved;
  }
  throw InternalError("not an activation");
}

}  // namespace

Body activation(const Described& d) {
  return [count = d.in[0].elements(), attrs = d.attrs<ir::ActivationAttrs>()](const KernelArgs& args) {
    for (std::int64_t i = 0; i < count; ++i) {
      floats_out(args, 0)[i] = static_cast<float>(value(attrs, floats_in(args, 0)[i]));
    }
  };
}

Body activation_backward(const Described& d) {
  return [count = d.in[0].elements(), attrs = d.attrs<ir::ActivationAttrs>()](const KernelArgs& args) {
    for (std::int64_t i = 0; i < count; ++i) {
      floats_out(args, 0)[i] =
          static_cast<float>(slope(attrs, floats_in(args, 0)[i]) * floats_in(args, 1)[i]);
    }
  };
}

Body dropout(const Described& d) {
  const std::int64_t sample = d.in[0].elements(1, d.in[0].rank());
  return [count = d.in[0].elements(), sample, attrs = d.attrs<ir::DropoutAttrs>()](const KernelArgs& args) {
    const CounterRandom random(args.step->seed, RandomPurpose::dropout, args.step->step, attrs.key);
    const float scale = 1 / (1 - attrs.probability);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto element =
          static_cast<std::uint64_t>((args.step->first_sample + attrs.first_sample) * sample + i);
      const bool keep = random.uniform(element) >= attrs.probability;
      floats_out(args, 0)[i] = keep ? floats_in(args, 0)[i] * scale : 0;
    }
  };
}

Body add(const Described& d) {
  return [count = d.in[0].elements()](const KernelArgs& args) {
    for (std::int64_t i = 0; i < count; ++i)
      floats_out(args, 0)[i] = floats_in(args, 0)[i] + floats_in(args, 1)[i];
  };
}

Body multiply(const Described& d) {
  return [count = d.in[0].elements()](const KernelArgs& args) {
    for (std::int64_t i = 0; i < count; ++i)
      floats_out(args, 0)[i] = floats_in(args, 0)[i] * floats_in(args, 1)[i];
  };
}

}  // namespace penstock::kernels::reference
