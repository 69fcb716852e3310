#include "base/error.h"
#include "kernels/cpu/channel_layout.h"
#include "kernels/cpu/half_layout.h"
#include "kernels/native/loss_kernels.h"
#include "kernels/native/update_kernels.h"

namespace penstock::kernels::cpu {

Selection select_loss(const Request& request) {
  const ir::Shape& shape = request.input(0).shape;
  native::LossShape loss{shape[0], shape[1], shape.elements(2, shape.rank())};
  if (const auto* mean = request.op.attrs.get_if<ir::MeanAttrs>()) loss.count = mean->count;
  Selection selection = request.plain_selection();
  selection.kernel = request.op.kind == ir::OpKind::cross_entropy ? native::make_cross_entropy(loss)
                     : request.op.kind == ir::OpKind::cross_entropy_backward
                         ? native::make_cross_entropy_backward(loss)
                         : native::make_count_correct(loss);
  return selection;
}

/// Everything in the parameter's layout: the gradient is reordered if it came in another. A slice of a
/// parameter lies in one piece only in the plain layout.
Selection select_update(const Request& request) {
  const ir::Layout layout = request.given_or_plain(0);
  const bool is_whole = request.input(1).shape.elements() == request.input(0).shape.elements();
  require(is_whole || layout.is_plain(), "an update of a slice needs a parameter in plain layout");
  Selection selection = request.plain_selection();
  if (is_whole) {
    for (ir::Layout& input : selection.inputs) input = layout;
    for (ir::Layout& output : selection.outputs) output = layout;
    // Behind p, dp and the state, one for each output but the first: the factor of a clipped gradient.
    if (selection.inputs.size() > selection.outputs.size() + 1) selection.inputs.back() = {};
  }
  const auto* adam = request.op.attrs.get_if<ir::AdamAttrs>();
  if (adam != nullptr && adam->bf16_moments) {
    for (const std::size_t i : {2, 3}) {
      selection.inputs[i] = half_layout(request.input(i), selection.inputs[i]);
      selection.outputs[i - 1] = selection.inputs[i];
    }
  }
  const std::int64_t count =
      is_whole ? floats_of(request.input(0), layout) : request.input(1).shape.elements();
  selection.kernel = request.op.kind == ir::OpKind::sgd_update
                         ? native::make_sgd_update(count, request.op.attrs_as<ir::SgdAttrs>())
                         : native::make_adam_update(count, request.op.attrs_as<ir::AdamAttrs>());
  return selection;
}

}  // namespace penstock::kernels::cpu
