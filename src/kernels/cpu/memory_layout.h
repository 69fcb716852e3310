#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "ir/tensor.h"

namespace penstock::kernels::cpu {

using MemoryDesc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

/// What Layout::descriptor points to in this backend.
struct Descriptor {
  MemoryDesc memory;
  MemoryDesc plain;  ///< the tensor's row-major order, in the same logical dimensions as `memory`
  MemoryDesc owner;  ///< of a pooling workspace: the layout of the pooled tensor; otherwise empty
};

/// Row-major float32 description of `dims`.
MemoryDesc plain_desc(const Dims& dims);
/// The same dimensions with the layout left to the library.
MemoryDesc any_desc(const MemoryDesc& desc);

/// The layout of a tensor that lies in memory as `memory` says. `plain` has the same logical dimensions and
/// says which order is the tensor's row-major one (for transposed weights it is not that of the dimensions).
/// Equal orders in memory have equal tags, whatever their descriptions: a channel block of eight channels is
/// channels-last.
ir::Layout make_layout(const MemoryDesc& memory, const MemoryDesc& plain);

/// The layout of a pooling workspace.
ir::Layout make_workspace_layout(const MemoryDesc& workspace, const MemoryDesc& pooled);

/// The memory description of `layout`, given the one of row-major order.
MemoryDesc desc_of(const ir::Layout& layout, const MemoryDesc& plain);

/// Non-plain layouts only.
const Descriptor& descriptor_of(const ir::Layout& layout);

}  // namespace penstock::kernels::cpu
