#pragma once

#include <optional>

#include "kernels/cpu/request.h"
#include "kernels/native/channel_view.h"

namespace penstock::kernels::cpu {

/// How a tensor [N, C, ...] in `layout` lies in memory, if our own kernels can walk it.
std::optional<native::ChannelView> view_of(const ir::Shape& shape, const ir::Layout& layout);

/// A tensor [N, C, ...] of extents `dims` in the layout of `like`, whose extents may differ: the same blocks
/// of channels, channels-last, or plain.
MemoryDesc desc_like(const Dims& dims, const MemoryDesc& like);

/// The blocks of channels that `like` has, or plain.
ir::Layout layout_like(const Dims& dims, const ir::Layout& like);

/// Which layout an op on several tensors of one shape works in: the first of the inputs listed in `which`
/// that is not plain and can be walked, otherwise plain.
ir::Layout common_layout(const Request& request, std::span<const std::size_t> which);

/// Floats a tensor takes in memory, padding included.
std::int64_t floats_of(const ir::Tensor& tensor, const ir::Layout& layout);

}  // namespace penstock::kernels::cpu
