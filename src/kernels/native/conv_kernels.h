#pragma once

#include "kernels/native/conv_shape.h"
#include "kernels/native/function_kernel.h"

namespace penstock::kernels::native {

/// Whether the processor runs these as fast as the library's.
bool has_conv_kernels();

/// x, dy -> dw, (db). Never slower than the library's, by a third faster on small images.
std::shared_ptr<const Kernel> make_conv_backward_weights(const ConvShape& shape, bool bias);

}  // namespace penstock::kernels::native
