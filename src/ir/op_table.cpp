#include "ir/op_table.h"

#include <array>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace penstock::ir {
namespace {

template <typename T, std::size_t... I>
constexpr std::size_t index_in(std::index_sequence<I...> /*indices*/) {
  std::size_t index = sizeof...(I);
  ((std::is_same_v<T, std::variant_alternative_t<I, Attrs>> ? void(index = I) : void()), ...);
  return index;
}

template <typename T>
constexpr std::size_t kAttrs = index_in<T>(std::make_index_sequence<std::variant_size_v<Attrs>>());

constexpr std::array<OpInfo, kOpKinds> kTable{{
    {OpKind::data, "data", kAttrs<NoAttrs>, 0, 0, 2, 2},
    {OpKind::conv, "conv", kAttrs<ConvAttrs>, 2, 3, 1, 1},
    {OpKind::conv_backward_data, "conv_backward_data", kAttrs<ConvAttrs>, 2, 2, 1, 1},
    {OpKind::conv_backward_weights, "conv_backward_weights", kAttrs<ConvAttrs>, 2, 2, 1, 2},
    {OpKind::conv_transpose, "conv_transpose", kAttrs<ConvAttrs>, 2, 3, 1, 1},
    {OpKind::conv_transpose_backward_data, "conv_transpose_backward_data", kAttrs<ConvAttrs>, 2, 2, 1, 1},
    {OpKind::conv_transpose_backward_weights, "conv_transpose_backward_weights", kAttrs<ConvAttrs>, 2, 2, 1,
     2},
    {OpKind::linear, "linear", kAttrs<LinearAttrs>, 2, 3, 1, 1},
    {OpKind::linear_backward_data, "linear_backward_data", kAttrs<LinearAttrs>, 2, 2, 1, 1},
    {OpKind::linear_backward_weights, "linear_backward_weights", kAttrs<LinearAttrs>, 2, 2, 1, 2},
    {OpKind::matmul, "matmul", kAttrs<MatmulAttrs>, 2, 2, 1, 1},
    {OpKind::bias, "bias", kAttrs<NoAttrs>, 2, 2, 1, 1},
    {OpKind::bias_backward, "bias_backward", kAttrs<NoAttrs>, 1, 1, 1, 1},
    {OpKind::batch_norm_statistics, "batch_norm_statistics", kAttrs<NormAttrs>, 1, 1, 2, 2},
    {OpKind::batch_norm, "batch_norm", kAttrs<NormAttrs>, 5, 6, 1, 2},
    {OpKind::batch_norm_backward, "batch_norm_backward", kAttrs<NormAttrs>, 5, 6, 3, 4},
    {OpKind::statistics_update, "statistics_update", kAttrs<StatisticsAttrs>, 4, 4, 2, 2},
    {OpKind::layer_norm, "layer_norm", kAttrs<NormAttrs>, 3, 3, 3, 3},
    {OpKind::layer_norm_backward, "layer_norm_backward", kAttrs<NormAttrs>, 5, 5, 3, 3},
    {OpKind::activation, "activation", kAttrs<ActivationAttrs>, 1, 1, 1, 1},
    {OpKind::activation_backward, "activation_backward", kAttrs<ActivationAttrs>, 2, 2, 1, 1},
    {OpKind::max_pool, "max_pool", kAttrs<PoolAttrs>, 1, 1, 1, 2},
    {OpKind::max_pool_backward, "max_pool_backward", kAttrs<PoolAttrs>, 2, 2, 1, 1},
    {OpKind::avg_pool, "avg_pool", kAttrs<PoolAttrs>, 1, 1, 1, 1},
    {OpKind::avg_pool_backward, "avg_pool_backward", kAttrs<PoolAttrs>, 1, 1, 1, 1},
    {OpKind::global_avg_pool, "global_avg_pool", kAttrs<NoAttrs>, 1, 1, 1, 1},
    {OpKind::global_avg_pool_backward, "global_avg_pool_backward", kAttrs<NoAttrs>, 1, 1, 1, 1},
    {OpKind::lrn, "lrn", kAttrs<LrnAttrs>, 1, 1, 1, 1},
    {OpKind::lrn_backward, "lrn_backward", kAttrs<LrnAttrs>, 2, 2, 1, 1},
    {OpKind::dropout, "dropout", kAttrs<DropoutAttrs>, 1, 1, 1, 1},
    {OpKind::dropout_backward, "dropout_backward", kAttrs<DropoutAttrs>, 1, 1, 1, 1},
    {OpKind::add, "add", kAttrs<NoAttrs>, 2, 2, 1, 1},
    {OpKind::multiply, "multiply", kAttrs<NoAttrs>, 2, 2, 1, 1},
    {OpKind::concat, "concat", kAttrs<AxisAttrs>, 1, kManyTensors, 1, 1},
    {OpKind::split, "split", kAttrs<AxisAttrs>, 1, 1, 1, kManyTensors},
    {OpKind::pad, "pad", kAttrs<PadAttrs>, 1, 1, 1, 1},
    {OpKind::crop, "crop", kAttrs<PadAttrs>, 1, 1, 1, 1},
    {OpKind::upsample, "upsample", kAttrs<UpsampleAttrs>, 1, 1, 1, 1},
    {OpKind::upsample_backward, "upsample_backward", kAttrs<UpsampleAttrs>, 1, 1, 1, 1},
    {OpKind::reshape, "reshape", kAttrs<NoAttrs>, 1, 1, 1, 1},
    {OpKind::transpose, "transpose", kAttrs<TransposeAttrs>, 1, 1, 1, 1},
    {OpKind::softmax, "softmax", kAttrs<AxisAttrs>, 1, 1, 1, 1},
    {OpKind::softmax_backward, "softmax_backward", kAttrs<AxisAttrs>, 2, 2, 1, 1},
    {OpKind::cross_entropy, "cross_entropy", kAttrs<NoAttrs>, 2, 2, 2, 2},
    {OpKind::cross_entropy_backward, "cross_entropy_backward", kAttrs<NoAttrs>, 2, 2, 1, 1},
    {OpKind::count_correct, "count_correct", kAttrs<NoAttrs>, 2, 2, 1, 1},
    {OpKind::sgd_update, "sgd_update", kAttrs<SgdAttrs>, 2, 3, 1, 2},
    {OpKind::adam_update, "adam_update", kAttrs<AdamAttrs>, 4, 4, 3, 3},
    {OpKind::reduce_start, "reduce_start", kAttrs<ExchangeAttrs>, 1, kManyTensors, 1, 1},
    {OpKind::reduce_wait, "reduce_wait", kAttrs<ExchangeAttrs>, 1, 1, 0, kManyTensors},
    {OpKind::gather_start, "gather_start", kAttrs<ExchangeAttrs>, 0, kManyTensors, 1, 1},
    {OpKind::gather_wait, "gather_wait", kAttrs<ExchangeAttrs>, 2, kManyTensors, 1, kManyTensors},
    {OpKind::take_slice, "take_slice", kAttrs<SliceAttrs>, 1, 1, 1, 1},
    {OpKind::reorder, "reorder", kAttrs<NoAttrs>, 1, 1, 1, 1},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].kind) != i) return false;
  }
  return true;
}
static_assert(in_order(), "the table is indexed by the op kind");

}  // namespace

const OpInfo& op_info(OpKind kind) {
  const auto index = static_cast<std::size_t>(kind);
  require(index < kTable.size(), "op_info: not an op kind");
  return kTable[index];
}

}  // namespace penstock::ir
