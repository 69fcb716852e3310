#pragma once

#include "kernels/native/function_kernel.h"

namespace penstock::kernels::native {

/// Log-probabilities of shape [N, K, ...].
std::shared_ptr<const Kernel> make_nll_loss(const ir::Shape& shape, const ir::NllAttrs& attrs);
std::shared_ptr<const Kernel> make_nll_loss_backward(const ir::Shape& shape, const ir::NllAttrs& attrs);

}  // namespace penstock::kernels::native
