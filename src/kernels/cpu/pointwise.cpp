#include <array>

#include "kernels/cpu/channel_layout.h"
#include "kernels/native/channel_kernels.h"
#include "kernels/native/copy_kernels.h"
#include "kernels/native/lrn_kernel.h"
#include "kernels/native/pointwise_kernels.h"

namespace penstock::kernels::cpu {

Selection select_port(const Request& request) {
  Selection selection = request.plain_selection();
  const int port = request.op.attrs_as<ir::PortAttrs>().port;
  selection.kernel =
      request.op.kind == ir::OpKind::input ? native::make_input(port) : native::make_output(port);
  return selection;
}

/// Gradients of weights from two slices of the batch lie as their kernel made them, in blocks that nothing
/// else can walk: they are added as they are.
Selection select_pointwise(const Request& request) {
  const bool alike =
      request.given[0] != nullptr && request.given[1] != nullptr && *request.given[0] == *request.given[1];
  const ir::Layout layout =
      alike ? *request.given[0] : common_layout(request, std::array<std::size_t, 2>{0, 1});
  Selection selection;
  selection.inputs = {layout, layout};
  selection.outputs = {layout};
  const std::int64_t count = floats_of(request.output(0), layout);
  selection.kernel =
      request.op.kind == ir::OpKind::add ? native::make_add(count) : native::make_multiply(count);
  return selection;
}

Selection select_bias(const Request& request) {
  const ir::Layout layout = common_layout(request, std::array<std::size_t, 1>{0});
  const native::ChannelView view = *view_of(request.input(0).shape, layout);
  Selection selection = request.plain_selection();
  selection.inputs[0] = layout;
  if (request.op.kind == ir::OpKind::bias) {
    selection.outputs[0] = layout;
    selection.kernel = native::make_bias(view);
  } else {
    selection.kernel = native::make_bias_backward(view);
  }
  return selection;
}

ir::Layout pooled_layout(const Request& request) {
  for (const ir::Op& op : request.graph.ops) {
    if (op.kind != ir::OpKind::global_avg_pool) continue;
    const ir::Tensor& pooled = request.graph.tensor(op.inputs[0]);
    if (pooled.shape == request.output(0).shape && view_of(pooled.shape, pooled.layout)) return pooled.layout;
  }
  return {};
}

Selection select_global_avg_pool(const Request& request) {
  Selection selection = request.plain_selection();
  if (request.op.kind == ir::OpKind::global_avg_pool) {
    selection.inputs[0] = common_layout(request, std::array<std::size_t, 1>{0});
    selection.kernel = native::make_global_average(*view_of(request.input(0).shape, selection.inputs[0]));
  } else {
    selection.outputs[0] = pooled_layout(request);
    selection.kernel =
        native::make_global_average_backward(*view_of(request.output(0).shape, selection.outputs[0]));
  }
  return selection;
}

Selection select_lrn(const Request& request) {
  const auto& attrs = request.op.attrs_as<ir::LrnAttrs>();
  const ir::Shape& shape = request.input(0).shape;
  Selection selection = request.plain_selection();
  selection.kernel = request.op.kind == ir::OpKind::lrn ? native::make_lrn(shape, attrs)
                                                        : native::make_lrn_backward(shape, attrs);
  return selection;
}

Selection select_dropout(const Request& request) {
  Selection selection = request.plain_selection();
  selection.kernel = native::make_dropout(request.input(0).shape, request.op.attrs_as<ir::DropoutAttrs>());
  return selection;
}

Selection select_reshape(const Request& request) {
  Selection selection = request.plain_selection();
  selection.kernel =
      native::make_reshape(request.input(0).shape.elements(), ir::dtype_bytes(request.input(0).dtype));
  return selection;
}

}  // namespace penstock::kernels::cpu
