#pragma once

#include <memory>

#include "ir/tensor.h"
#include "kernels/kernel.h"

/// Layouts in which a float32 tensor is kept in bfloat16.
namespace penstock::kernels::cpu {

/// The order of `order`, with half of the bytes.
ir::Layout half_layout(const ir::Tensor& tensor, const ir::Layout& order);
bool is_half(const ir::Layout& layout);
/// The layout in float32 that has the same order.
const ir::Layout& order_of(const ir::Layout& half);

/// From bfloat16 to float32, or back with rounding to the nearest, both in one order. `count`: elements.
std::shared_ptr<const Kernel> make_widening(std::int64_t count);
std::shared_ptr<const Kernel> make_narrowing(std::int64_t count);
/// One kernel, then another on what it made, which has `between_bytes`.
std::shared_ptr<const Kernel> make_chain(std::shared_ptr<const Kernel> first,
                                         std::shared_ptr<const Kernel> second, std::int64_t between_bytes);

}  // namespace penstock::kernels::cpu
