#include "base/error.h"
#include "kernels/cpu/channel_layout.h"
#include "kernels/cpu/request.h"
#include "kernels/native/text_kernels.h"

namespace penstock::kernels::cpu {
namespace {

native::ShapeList shapes_of(const Request& request) {
  native::ShapeList shapes;
  for (std::size_t i = 0; i < request.op.inputs.size(); ++i) shapes.push_back(request.input(i).shape);
  return shapes;
}

std::shared_ptr<const Kernel> make_text(const Request& request) {
  using ir::OpKind;
  const ir::Op& op = request.op;
  const native::ShapeList in = shapes_of(request);
  const bool kept_mask = request.input(op.inputs.size() - 1).dtype == ir::DType::u8;
  switch (op.kind) {
    case OpKind::attention:
      return native::make_attention(op.attrs_as<ir::AttentionAttrs>(), in, kept_mask);
    case OpKind::attention_backward:
      return native::make_attention_backward(op.attrs_as<ir::AttentionAttrs>(), in, kept_mask);
    case OpKind::layer_norm:
      return native::make_row_norm(op.attrs_as<ir::LayerNormAttrs>(), in[0]);
    case OpKind::layer_norm_backward:
      return native::make_row_norm_backward(op.attrs_as<ir::LayerNormAttrs>(), in[0]);
    case OpKind::embedding:
      return native::make_embedding(in);
    case OpKind::embedding_backward:
      return native::make_embedding_backward(op.attrs_as<ir::EmbeddingAttrs>(), in, request.output(0).shape);
    case OpKind::position_backward:
      return native::make_position_backward(in[0], request.output(0).shape);
    case OpKind::rotary:
      return native::make_rotary(op.attrs_as<ir::RotaryAttrs>(), in[0]);
    case OpKind::gate:
      return native::make_gate(op.attrs_as<ir::GateAttrs>(), in[0].elements(), in.size() > 1);
    case OpKind::gate_backward:
      return native::make_gate_backward(op.attrs_as<ir::GateAttrs>(), in[0].elements(), in.size() > 2);
    case OpKind::linear_cross_entropy:
      return native::make_linear_cross_entropy(op.attrs_as<ir::OutputLossAttrs>(), in);
    case OpKind::linear_cross_entropy_backward:
      return native::make_linear_cross_entropy_backward(op.attrs_as<ir::OutputLossAttrs>(), in,
                                                        request.output(1).shape[0]);
    case OpKind::clip_scale:
      return native::make_clip_scale(op.attrs_as<ir::ClipAttrs>(), in.size());
    default:
      throw InternalError("not an op of transformers");
  }
}

/// Sums of squares do not depend on the order of the elements; what a layout adds to them is zero.
Selection select_sum_squares(const Request& request) {
  Selection selection = request.plain_selection();
  native::ShapeList memory;
  for (std::size_t i = 0; i < request.op.inputs.size(); ++i) {
    selection.inputs[i] = request.given_or_plain(i);
    memory.push_back({floats_of(request.input(i), selection.inputs[i])});
  }
  selection.kernel = native::make_sum_squares(memory);
  return selection;
}

}  // namespace

Selection select_text(const Request& request) {
  if (request.op.kind == ir::OpKind::sum_squares) return select_sum_squares(request);
  Selection selection = request.plain_selection();
  selection.kernel = make_text(request);
  return selection;
}

bool has_own_linear(const Request& request) {
  const ir::LinearAttrs& attrs = request.op.attrs_as<ir::LinearAttrs>();
  return attrs.turned || attrs.begin > 0 || request.input(0).shape.rank() > 2;
}

Selection select_own_linear(const Request& request) {
  const ir::LinearAttrs& attrs = request.op.attrs_as<ir::LinearAttrs>();
  const native::ShapeList in = shapes_of(request);
  Selection selection = request.plain_selection();
  if (request.op.kind == ir::OpKind::linear) {
    selection.kernel = native::make_linear(attrs, in);
  } else if (request.op.kind == ir::OpKind::linear_backward_data) {
    selection.kernel = native::make_linear_backward_data(attrs, in);
  } else {
    selection.kernel = native::make_linear_backward_weights(attrs, in, request.output(0).shape[0],
                                                            request.op.outputs.size() > 1);
  }
  return selection;
}

}  // namespace penstock::kernels::cpu
