#pragma once

#include "kernels/native/channel_view.h"
#include "kernels/native/function_kernel.h"

namespace penstock::kernels::native {

std::shared_ptr<const Kernel> make_bias(const ChannelView& view);
std::shared_ptr<const Kernel> make_bias_backward(const ChannelView& view);
/// y and dy are plain.
std::shared_ptr<const Kernel> make_global_average(const ChannelView& view);
std::shared_ptr<const Kernel> make_global_average_backward(const ChannelView& view);

}  // namespace penstock::kernels::native
