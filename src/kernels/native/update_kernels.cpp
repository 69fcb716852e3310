#include "kernels/native/update_kernels.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "kernels/native/simd/table.h"

namespace penstock::kernels::native {

namespace {

/// What the gradient is multiplied by: a clipped update has the last part of it as its last input.
template <typename UpdateAttrs>
float gradient_scale(const KernelArgs& args, const UpdateAttrs& attrs) {
  return attrs.clipped ? attrs.gradient_scale * floats_in(args, args.inputs.size() - 1)[0]
                       : attrs.gradient_scale;
}

}  // namespace

std::shared_ptr<const Kernel> make_sgd_update(std::int64_t count, const ir::SgdAttrs& attrs) {
  return make_kernel(
      [count, attrs](const KernelArgs& args) {
        SgdStep step;
        step.count = count;
        step.p = floats_in(args, 0) + attrs.begin;
        step.gradient = floats_in(args, 1);
        step.m = args.outputs.size() > 1 ? floats_in(args, 2) : nullptr;
        step.gradient_scale = gradient_scale(args, attrs);
        step.p_out = floats_out(args, 0) + attrs.begin;
        step.m_out = floats_out(args, 1);
        step.learning_rate = static_cast<float>(args.step->learning_rate);
        step.momentum = attrs.momentum;
        step.weight_decay = attrs.weight_decay;
        step.nesterov = attrs.nesterov;
        simd().sgd(step);
      },
      {{0, 0}, {1, 2}});
}

std::shared_ptr<const Kernel> make_adam_update(std::int64_t count, const ir::AdamAttrs& attrs) {
  return make_kernel(
      [count, attrs](const KernelArgs& args) {
        const double rate = args.step->learning_rate;
        const auto t = static_cast<double>(args.step->step + 1);
        AdamStep step;
        step.count = count;
        step.p = floats_in(args, 0) + attrs.begin;
        step.gradient = floats_in(args, 1);
        if (attrs.bf16_moments) {
          step.m16 = static_cast<const std::uint16_t*>(args.inputs[2]);
          step.v16 = static_cast<const std::uint16_t*>(args.inputs[3]);
          step.m16_out = static_cast<std::uint16_t*>(args.outputs[1]);
          step.v16_out = static_cast<std::uint16_t*>(args.outputs[2]);
          const auto key =
              CounterRandom(args.step->seed, RandomPurpose::round, args.step->step, attrs.key).key();
          std::copy(key.begin(), key.end(), step.random);
          step.first_element = static_cast<std::uint64_t>(attrs.begin);
        } else {
          step.m = floats_in(args, 2);
          step.v = floats_in(args, 3);
          step.m_out = floats_out(args, 1);
          step.v_out = floats_out(args, 2);
        }
        step.gradient_scale = gradient_scale(args, attrs);
        step.p_out = floats_out(args, 0) + attrs.begin;
        step.beta1 = attrs.beta1;
        step.beta2 = attrs.beta2;
        step.epsilon = attrs.epsilon;
        if (attrs.decoupled) {
          step.keep = static_cast<float>(1 - rate * static_cast<double>(attrs.weight_decay));
        } else {
          step.weight_decay = attrs.weight_decay;
        }
        step.step_size = static_cast<float>(rate / (1 - std::pow(static_cast<double>(attrs.beta1), t)));
        step.correction2_root =
            static_cast<float>(std::sqrt(1 - std::pow(static_cast<double>(attrs.beta2), t)));
        simd().adam(step);
      },
      {{0, 0}, {1, 2}, {2, 3}});
}

}  // namespace penstock::kernels::native
