#include "base/error.h"
#include "kernels/reference/families.h"

namespace penstock::kernels::reference {

using ir::OpKind;

namespace {

Body make_input(const Described& d) {
  return [port = d.op.attrs_as<ir::PortAttrs>().port](const KernelArgs& args) {
    require(static_cast<bool>(args.step->feed), "the step has nobody to feed it");
    args.step->feed(port, args.outputs[0]);
  };
}

Body make_output(const Described& d) {
  return [port = d.op.attrs_as<ir::PortAttrs>().port](const KernelArgs& args) {
    if (args.step->take) args.step->take(port, args.inputs[0]);
  };
}

}  // namespace

Body make_body(const Described& d) {
  switch (d.op.kind) {
    case OpKind::input:
      return make_input(d);
    case OpKind::output:
      return make_output(d);
    case OpKind::conv:
      return conv(d);
    case OpKind::conv_backward_data:
      return conv_backward_data(d);
    case OpKind::conv_backward_weights:
      return conv_backward_weights(d);
    case OpKind::conv_transpose:
      return conv_transpose(d);
    case OpKind::conv_transpose_backward_data:
      return conv_transpose_backward_data(d);
    case OpKind::conv_transpose_backward_weights:
      return conv_transpose_backward_weights(d);
    case OpKind::linear:
      return linear(d);
    case OpKind::linear_backward_data:
      return linear_backward_data(d);
    case OpKind::linear_backward_weights:
      return linear_backward_weights(d);
    case OpKind::matmul:
      return matmul(d);
    case OpKind::bias:
      return bias(d);
    case OpKind::bias_backward:
      return bias_backward(d);
    case OpKind::batch_norm_statistics:
      return batch_norm_statistics(d);
    case OpKind::batch_norm:
      return batch_norm(d);
    case OpKind::batch_norm_backward:
    case OpKind::batch_norm_silu_backward:
      return batch_norm_backward(d);
    case OpKind::combine_statistics:
      return combine_statistics(d);
    case OpKind::batch_norm_backward_sums:
    case OpKind::batch_norm_silu_backward_sums:
      return batch_norm_backward_sums(d);
    case OpKind::batch_norm_backward_data:
    case OpKind::batch_norm_silu_backward_data:
      return batch_norm_backward_data(d);
    case OpKind::statistics_update:
      return statistics_update(d);
    case OpKind::layer_norm:
      return layer_norm(d);
    case OpKind::layer_norm_backward:
      return layer_norm_backward(d);
    case OpKind::attention:
      return attention(d);
    case OpKind::attention_backward:
      return attention_backward(d);
    case OpKind::embedding:
      return embedding(d);
    case OpKind::embedding_backward:
      return embedding_backward(d);
    case OpKind::position_backward:
      return position_backward(d);
    case OpKind::rotary:
      return rotary(d);
    case OpKind::gate:
      return gate(d);
    case OpKind::gate_backward:
      return gate_backward(d);
    case OpKind::linear_cross_entropy:
      return linear_cross_entropy(d);
    case OpKind::linear_cross_entropy_backward:
      return linear_cross_entropy_backward(d);
    case OpKind::sum_squares:
      return sum_squares(d);
    case OpKind::clip_scale:
      return clip_scale(d);
    case OpKind::activation:
      return activation(d);
    case OpKind::activation_backward:
      return activation_backward(d);
    case OpKind::max_pool:
      return max_pool(d);
    case OpKind::max_pool_backward:
      return max_pool_backward(d);
    case OpKind::avg_pool:
      return avg_pool(d);
    case OpKind::avg_pool_backward:
      return avg_pool_backward(d);
    case OpKind::global_avg_pool:
      return global_avg_pool(d);
    case OpKind::global_avg_pool_backward:
      return global_avg_pool_backward(d);
    case OpKind::lrn:
      return lrn(d);
    case OpKind::lrn_backward:
      return lrn_backward(d);
    // The same mask and the same scale in both directions.
    case OpKind::dropout:
    case OpKind::dropout_backward:
      return dropout(d);
    case OpKind::add:
      return add(d);
    case OpKind::multiply:
      return multiply(d);
    case OpKind::concat:
      return concat(d);
    case OpKind::split:
      return split(d);
    case OpKind::pad:
      return pad(d);
    case OpKind::crop:
      return crop(d);
    case OpKind::upsample:
      return upsample(d);
    case OpKind::upsample_backward:
      return upsample_backward(d);
    case OpKind::reshape:
      return copy(d);
    case OpKind::transpose:
      return transpose(d);
    case OpKind::softmax:
      return softmax(d);
    case OpKind::softmax_backward:
      return softmax_backward(d);
    case OpKind::log_softmax:
      return log_softmax(d);
    case OpKind::log_softmax_backward:
      return log_softmax_backward(d);
    case OpKind::pointwise:
      return pointwise(d);
    case OpKind::reduce:
      return reduce(d);
    case OpKind::argmax:
      return argmax(d);
    case OpKind::slice:
      return slice(d);
    case OpKind::slice_backward:
      return slice_backward(d);
    case OpKind::gather:
      return gather(d);
    case OpKind::gather_backward:
      return gather_backward(d);
    case OpKind::nll_loss:
      return nll_loss(d);
    case OpKind::nll_loss_backward:
      return nll_loss_backward(d);
    case OpKind::cross_entropy:
      return cross_entropy(d);
    case OpKind::cross_entropy_backward:
      return cross_entropy_backward(d);
    case OpKind::count_correct:
      return count_correct(d);
    case OpKind::sgd_update:
      return sgd_update(d);
    case OpKind::adam_update:
      return adam_update(d);
    case OpKind::reduce_start:
    case OpKind::reduce_wait:
    case OpKind::gather_start:
    case OpKind::gather_wait:
    case OpKind::take_slice:
    case OpKind::reorder:
      break;
  }
  throw InternalError("the layouts, not the op, say what a reorder or an exchange does");
}

}  // namespace penstock::kernels::reference
