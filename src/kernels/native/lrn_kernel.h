#pragma once

#include "kernels/native/function_kernel.h"

namespace penstock::kernels::native {

/// Local response normalisation across channels of a plain tensor [N, C, ...].
std::shared_ptr<const Kernel> make_lrn(const ir::Shape& shape, const ir::LrnAttrs& attrs);
std::shared_ptr<const Kernel> make_lrn_backward(const ir::Shape& shape, const ir::LrnAttrs& attrs);

}  // namespace penstock::kernels::native
