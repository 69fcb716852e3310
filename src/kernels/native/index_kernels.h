#pragma once

#include "kernels/native/function_kernel.h"

namespace penstock::kernels::native {

/// y[i] = x[begin + i * step] on each axis; elements of `element_bytes` (1 or 4).
std::shared_ptr<const Kernel> make_slice(const ir::Shape& whole, const ir::Shape& part,
                                         const ir::StridedAttrs& attrs, std::int64_t element_bytes);
std::shared_ptr<const Kernel> make_slice_backward(const ir::Shape& whole, const ir::Shape& part,
                                                  const ir::StridedAttrs& attrs);

/// Rows of `inner` elements along an axis of `rows`, for each of `outer`.
struct GatherShape {
  std::int64_t outer = 1, rows = 1, inner = 1, indices = 1;
};
/// A negative index counts from the end; one that is outside throws RunError.
std::shared_ptr<const Kernel> make_gather(const GatherShape& shape, std::int64_t element_bytes);
std::shared_ptr<const Kernel> make_gather_backward(const GatherShape& shape);

/// The first place of the largest of `extent` elements.
std::shared_ptr<const Kernel> make_argmax(std::int64_t outer, std::int64_t extent, std::int64_t inner);

}  // namespace penstock::kernels::native
