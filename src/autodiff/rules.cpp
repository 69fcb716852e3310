#include "autodiff/rules.h"

namespace penstock::autodiff {

using ir::OpKind;

Rule rule_of(OpKind kind) {
  switch (kind) {
    case OpKind::conv:
      return conv_rule;
    case OpKind::conv_transpose:
      return conv_transpose_rule;
    case OpKind::linear:
      return linear_rule;
    case OpKind::matmul:
      return matmul_rule;
    case OpKind::bias:
      return bias_rule;
    case OpKind::batch_norm:
      return batch_norm_rule;
    case OpKind::layer_norm:
      return layer_norm_rule;
    case OpKind::attention:
      return attention_rule;
    case OpKind::embedding:
      return embedding_rule;
    case OpKind::rotary:
      return rotary_rule;
    case OpKind::gate:
      return gate_rule;
    case OpKind::linear_cross_entropy:
      return linear_cross_entropy_rule;
    case OpKind::lrn:
      return lrn_rule;
    case OpKind::activation:
      return activation_rule;
    case OpKind::dropout:
      return dropout_rule;
    case OpKind::add:
      return add_rule;
    case OpKind::multiply:
      return multiply_rule;
    case OpKind::softmax:
      return softmax_rule;
    case OpKind::log_softmax:
      return log_softmax_rule;
    case OpKind::pointwise:
      return pointwise_rule;
    case OpKind::reduce:
      return reduce_rule;
    case OpKind::slice:
      return slice_rule;
    case OpKind::gather:
      return gather_rule;
    case OpKind::nll_loss:
      return nll_rule;
    case OpKind::cross_entropy:
      return cross_entropy_rule;
    case OpKind::max_pool:
      return max_pool_rule;
    case OpKind::avg_pool:
      return avg_pool_rule;
    case OpKind::global_avg_pool:
      return global_avg_pool_rule;
    case OpKind::upsample:
      return upsample_rule;
    case OpKind::concat:
      return concat_rule;
    case OpKind::split:
      return split_rule;
    case OpKind::pad:
      return pad_rule;
    case OpKind::crop:
      return crop_rule;
    case OpKind::reshape:
      return reshape_rule;
    case OpKind::transpose:
      return transpose_rule;
    default:
      return nullptr;
  }
}

bool is_differentiable(OpKind kind, std::size_t input) {
  if (rule_of(kind) == nullptr) return false;
  // batch_norm_backward differentiates through the statistics by itself.
  if (kind == OpKind::batch_norm) return input != 3 && input != 4;
  if (kind == OpKind::cross_entropy || kind == OpKind::gather || kind == OpKind::nll_loss) return input == 0;
  if (kind == OpKind::attention) return input < 3;  // a mask that is trained is refused
  if (kind == OpKind::embedding) return input > 0;
  if (kind == OpKind::linear_cross_entropy) return input < 2;
  return true;
}

}  // namespace penstock::autodiff
