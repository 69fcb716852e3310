#pragma once

#include "kernels/native/conv_shape.h"
#include "kernels/native/depthwise.h"
#include "kernels/native/function_kernel.h"
#include "kernels/native/grouped.h"

namespace penstock::kernels::native {

/// Whether the processor has the instructions that these are made of.
bool has_conv_kernels();

/// Channels of a block in Winograd's kernels: as many as a vector has.
std::int64_t winograd_lanes();
/// Whether a convolution is one that Winograd's method does faster than the definition.
bool suits_winograd(const ConvShape& shape);
/// x, w, (b) -> y.
std::shared_ptr<const Kernel> make_winograd_conv(const ConvShape& shape, bool relu);
/// dy, w -> dx; `shape` is that of the forward convolution.
std::shared_ptr<const Kernel> make_winograd_backward_data(const ConvShape& shape);
/// x, dy -> dw, (db).
std::shared_ptr<const Kernel> make_winograd_backward_weights(const ConvShape& shape, bool bias);

/// x, dy -> dw, (db). Never slower than the library's, by a third faster on small images.
std::shared_ptr<const Kernel> make_conv_backward_weights(const ConvShape& shape, bool bias);

/// x, dy -> dw, (db) of a convolution with one channel for each group.
std::shared_ptr<const Kernel> make_depthwise_backward_weights(const DepthwiseGradient& shape, bool bias);

/// The same three of a convolution in small groups; for processors that have wide().
std::shared_ptr<const Kernel> make_grouped_conv(const GroupedShape& shape, bool relu);
std::shared_ptr<const Kernel> make_grouped_backward_data(const GroupedShape& shape);
std::shared_ptr<const Kernel> make_grouped_backward_weights(const GroupedShape& shape, bool bias);

}  // namespace penstock::kernels::native
