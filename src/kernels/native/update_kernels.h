#pragma once

#include "kernels/native/function_kernel.h"

namespace penstock::kernels::native {

/// PyTorch's rules over `count` floats in whatever order; padding, which is zero, stays zero.
std::shared_ptr<const Kernel> make_sgd_update(std::int64_t count, const ir::SgdAttrs& attrs);
std::shared_ptr<const Kernel> make_adam_update(std::int64_t count, const ir::AdamAttrs& attrs);

}  // namespace penstock::kernels::native
