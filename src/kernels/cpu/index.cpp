#include "base/error.h"
#include "kernels/cpu/request.h"
#include "kernels/native/index_kernels.h"

namespace penstock::kernels::cpu {

/// argmax, slices and gathers: on plain tensors.
Selection select_index(const Request& request) {
  const ir::Shape& x = request.input(0).shape;
  const ir::Shape& y = request.output(0).shape;
  const std::int64_t element_bytes = ir::dtype_bytes(request.input(0).dtype);
  Selection selection = request.plain_selection();
  switch (request.op.kind) {
    case ir::OpKind::slice:
      selection.kernel = native::make_slice(x, y, request.op.attrs_as<ir::StridedAttrs>(), element_bytes);
      return selection;
    case ir::OpKind::slice_backward:
      selection.kernel = native::make_slice_backward(y, x, request.op.attrs_as<ir::StridedAttrs>());
      return selection;
    default:
      break;
  }
  const auto axis = static_cast<std::size_t>(request.op.attrs_as<ir::AxisAttrs>().axis);
  const ir::Shape& whole = request.op.kind == ir::OpKind::gather_backward ? y : x;
  native::GatherShape shape{whole.elements(0, axis), whole[axis], whole.elements(axis + 1, whole.rank()), 1};
  if (request.op.kind == ir::OpKind::argmax) {
    selection.kernel = native::make_argmax(shape.outer, shape.rows, shape.inner);
    return selection;
  }
  shape.indices = request.input(1).shape.elements();
  selection.kernel = request.op.kind == ir::OpKind::gather ? native::make_gather(shape, element_bytes)
                                                           : native::make_gather_backward(shape);
  return selection;
}

}  // namespace penstock::kernels::cpu
