#include "kernels/native/pointwise_kernels.h"

#include "kernels/native/simd/table.h"

namespace penstock::kernels::native {

std::shared_ptr<const Kernel> make_add(std::int64_t count) {
  return make_kernel(
      [count](const KernelArgs& args) {
        simd().add(count, floats_in(args, 0), floats_in(args, 1), floats_out(args, 0));
      },
      {{0, 0}, {0, 1}});
}

std::shared_ptr<const Kernel> make_multiply(std::int64_t count) {
  return make_kernel(
      [count](const KernelArgs& args) {
        simd().multiply(count, floats_in(args, 0), floats_in(args, 1), floats_out(args, 0));
      },
      {{0, 0}, {0, 1}});
}

std::shared_ptr<const Kernel> make_leaky_relu(std::int64_t count, float slope) {
  return make_kernel(
      [count, slope](const KernelArgs& args) {
        simd().leaky_relu(count, slope, floats_in(args, 0), floats_out(args, 0));
      },
      {{0, 0}});
}

std::shared_ptr<const Kernel> make_leaky_relu_backward(std::int64_t count, float slope) {
  return make_kernel(
      [count, slope](const KernelArgs& args) {
        simd().leaky_relu_backward(count, slope, floats_in(args, 0), floats_in(args, 1), floats_out(args, 0));
      },
      {{0, 1}, {0, 0}});
}

}  // namespace penstock::kernels::native
