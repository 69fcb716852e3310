#pragma once

#include "kernels/native/channel_view.h"
#include "kernels/native/function_kernel.h"

namespace penstock::kernels::native {

/// One pass over x.
std::shared_ptr<const Kernel> make_norm_statistics(const ChannelView& view);
/// One pass; y may take the memory of x or z.
std::shared_ptr<const Kernel> make_norm_forward(const ChannelView& view, const ir::NormAttrs& attrs);
/// One pass to sum, one to write; dx may take the memory of x or dy, dz that of dy.
std::shared_ptr<const Kernel> make_norm_backward(const ChannelView& view, const ir::NormAttrs& attrs);
/// The sums of a slice, with dz where something was added, which may take the memory of dy; and dx once the
/// sums of the whole batch are known, which may take that of x or dy.
std::shared_ptr<const Kernel> make_norm_backward_sums(const ChannelView& view, const ir::NormAttrs& attrs);
std::shared_ptr<const Kernel> make_norm_backward_data(const ChannelView& view, const ir::NormAttrs& attrs);
std::shared_ptr<const Kernel> make_combine_statistics(std::int64_t channels, const ir::CombineAttrs& attrs);
std::shared_ptr<const Kernel> make_statistics_update(std::int64_t channels, const ir::StatisticsAttrs& attrs);

}  // namespace penstock::kernels::native
