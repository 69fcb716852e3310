#include "base/error.h"
#include "kernels/cpu/channel_layout.h"
#include "kernels/native/index_kernels.h"

namespace penstock::kernels::cpu {

namespace {

bool takes_samples(const ir::Shape& x, const ir::Shape& y, const ir::StridedAttrs& attrs) {
  if (x.rank() < 2 || x.rank() != y.rank() || attrs.step[0] != 1) return false;
  for (std::size_t i = 1; i < x.rank(); ++i) {
    if (x[i] != y[i] || attrs.step[i] != 1) return false;
  }
  return true;
}

/// Samples lie one behind the other in every layout that can be walked.
Selection select_samples(const Request& request) {
  Selection selection = request.plain_selection();
  const ir::Layout given = request.given_or_plain(0);
  if (view_of(request.input(0).shape, given)) {
    selection.inputs[0] = given;
    selection.outputs[0] = layout_like(request.output_dims(0), given);
  }
  const std::int64_t samples = request.output(0).shape[0];
  const std::int64_t each = floats_of(request.output(0), selection.outputs[0]) / samples;
  const std::int64_t first = request.op.attrs_as<ir::StridedAttrs>().begin[0];
  selection.kernel = native::make_slice({request.input(0).shape[0], each}, {samples, each},
                                        {{first, 0}, {1, 1}}, ir::dtype_bytes(request.input(0).dtype));
  return selection;
}

}  // namespace

/// argmax, slices and gathers: on plain tensors.
Selection select_index(const Request& request) {
  const ir::Shape& x = request.input(0).shape;
  const ir::Shape& y = request.output(0).shape;
  const std::int64_t element_bytes = ir::dtype_bytes(request.input(0).dtype);
  Selection selection = request.plain_selection();
  switch (request.op.kind) {
    case ir::OpKind::slice:
      if (takes_samples(x, y, request.op.attrs_as<ir::StridedAttrs>())) return select_samples(request);
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
