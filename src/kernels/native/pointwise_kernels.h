#pragma once

#include "kernels/native/function_kernel.h"

namespace penstock::kernels::native {

/// `count` floats in whatever order, the same for all tensors, padding included.
std::shared_ptr<const Kernel> make_add(std::int64_t count);
std::shared_ptr<const Kernel> make_multiply(std::int64_t count);
/// Slope 0: ReLU.
std::shared_ptr<const Kernel> make_leaky_relu(std::int64_t count, float slope);
std::shared_ptr<const Kernel> make_leaky_relu_backward(std::int64_t count, float slope);
/// Plain order; the mask is drawn from the step, the op's key and the element's place in the whole batch.
std::shared_ptr<const Kernel> make_dropout(const ir::Shape& shape, const ir::DropoutAttrs& attrs);

}  // namespace penstock::kernels::native
