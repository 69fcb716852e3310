#include <array>

#include "base/error.h"
#include "kernels/cpu/channel_layout.h"
#include "kernels/native/norm_kernels.h"

namespace penstock::kernels::cpu {
namespace {

/// One bit an element, in the order of the normalised tensor.
ir::Layout mask_layout(const native::ChannelView& view, const ir::Layout& of) {
  return {"bits:" + (of.is_plain() ? "plain" : of.tag()), view.mask_bytes()};
}

}  // namespace

Selection select_batch_norm(const Request& request) {
  const auto& attrs = request.op.attrs_as<ir::NormAttrs>();
  const ir::Shape& shape = request.input(0).shape;
  Selection selection = request.plain_selection();
  const ir::Layout layout = common_layout(request, std::array<std::size_t, 1>{0});
  const native::ChannelView view = *view_of(shape, layout);
  selection.inputs[0] = layout;
  switch (request.op.kind) {
    case ir::OpKind::batch_norm_statistics:
      selection.kernel = native::make_norm_statistics(view);
      break;
    case ir::OpKind::batch_norm:
      if (attrs.add) selection.inputs[5] = layout;
      selection.outputs[0] = layout;
      if (attrs.relu && attrs.mask) selection.outputs[1] = mask_layout(view, layout);
      selection.kernel = native::make_norm_forward(view, attrs);
      break;
    case ir::OpKind::batch_norm_backward_sums:
    case ir::OpKind::batch_norm_silu_backward_sums:
      selection.inputs[1] = layout;
      if (attrs.mask) selection.inputs[4] = mask_layout(view, layout);
      if (attrs.add) selection.outputs[2] = layout;
      selection.kernel = native::make_norm_backward_sums(view, attrs);
      break;
    case ir::OpKind::batch_norm_backward_data:
    case ir::OpKind::batch_norm_silu_backward_data:
      selection.inputs[1] = layout;
      if (attrs.mask) selection.inputs[7] = mask_layout(view, layout);
      selection.outputs[0] = layout;
      selection.kernel = native::make_norm_backward_data(view, attrs);
      break;
    default:
      selection.inputs[1] = layout;
      if (attrs.mask) selection.inputs[5] = mask_layout(view, layout);
      selection.outputs[0] = layout;
      if (attrs.add) selection.outputs[3] = layout;
      selection.kernel = native::make_norm_backward(view, attrs);
  }
  return selection;
}

Selection select_combine_statistics(const Request& request) {
  Selection selection = request.plain_selection();
  selection.kernel = native::make_combine_statistics(request.input(0).shape.elements(),
                                                     request.op.attrs_as<ir::CombineAttrs>());
  return selection;
}

Selection select_statistics_update(const Request& request) {
  Selection selection = request.plain_selection();
  selection.kernel = native::make_statistics_update(request.input(0).shape.elements(),
                                                    request.op.attrs_as<ir::StatisticsAttrs>());
  return selection;
}

}  // namespace penstock::kernels::cpu
