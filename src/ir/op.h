#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ir/tensor.h"

namespace penstock::ir {

/// Every op of a training step. Inputs -> outputs in brackets; (x) is present or absent, g = groups.
/// N batch, C channels, "..." one to three spatial extents. All float32 unless said otherwise.
// clang-format off
enum class OpKind : std::uint8_t {
  data,  ///< [] -> images, labels(s32): copies the next batch into the step

  conv,                   ///< x[N,C,...], w[O,C/g,k...], (b[O]) -> y[N,O,...]              ConvAttrs
  conv_backward_data,     ///< dy, w -> dx                                                  ConvAttrs
  conv_backward_weights,  ///< x, dy -> dw, (db)                                            ConvAttrs
  conv_transpose,         ///< x[N,C,...], w[C,O/g,k...], (b[O]) -> y[N,O,...]              ConvAttrs
  conv_transpose_backward_data,     ///< dy, w -> dx                                        ConvAttrs
  conv_transpose_backward_weights,  ///< x, dy -> dw, (db)                                  ConvAttrs
  linear,                   ///< x[...,K], w[M,K], (b[M]) -> y[...,M]                       LinearAttrs
  linear_backward_data,     ///< dy, w -> dx                                                LinearAttrs
  linear_backward_weights,  ///< x, dy -> dw, (db)                                          LinearAttrs
  matmul,                   ///< a[...,M,K], b[...,K,N] -> y[...,M,N]                       MatmulAttrs
  bias,                     ///< x[N,C,...], b[C] -> y: added along axis 1                  NoAttrs
  bias_backward,            ///< dy -> db[C]                                                NoAttrs

  batch_norm_statistics,  ///< x -> mean[C], variance[C] (biased) of the batch              NormAttrs
  batch_norm,             ///< x, gamma, beta, mean, variance, (z) -> y, (mask(u8))         NormAttrs
                          ///< z if attrs.add: y = norm(x) + z; mask if attrs.relu and attrs.mask: which y > 0
  batch_norm_backward,    ///< x, dy, gamma, mean, variance, (mask) -> dx, dgamma, dbeta, (dz)  NormAttrs
  statistics_update,      ///< running_mean, running_var, mean, variance -> running_mean', running_var'  StatisticsAttrs
  layer_norm,             ///< x[...,D], gamma[D], beta[D] -> y, mean[rows], variance[rows] NormAttrs
  layer_norm_backward,    ///< x, dy, gamma, mean, variance -> dx, dgamma, dbeta            NormAttrs

  activation,           ///< x -> y                                                         ActivationAttrs
  activation_backward,  ///< saved, dy -> dx; saved is x for gelu and y for the others      ActivationAttrs
  max_pool,             ///< x -> y, (indices: a workspace, its dtype and size are the kernel's) PoolAttrs
  max_pool_backward,    ///< dy, indices -> dx                                              PoolAttrs
  avg_pool,             ///< x -> y                                                         PoolAttrs
  avg_pool_backward,    ///< dy -> dx                                                       PoolAttrs
  global_avg_pool,           ///< x[N,C,...] -> y[N,C,1...]                                 NoAttrs
  global_avg_pool_backward,  ///< dy -> dx                                                  NoAttrs
  lrn,                  ///< x -> y: across channels, PyTorch's rule                        LrnAttrs
  lrn_backward,         ///< x, dy -> dx                                                    LrnAttrs
  dropout,              ///< x -> y; the mask is drawn from (seed, step, key, element) in both directions  DropoutAttrs
  dropout_backward,     ///< dy -> dx                                                       DropoutAttrs

  add,        ///< a, b -> y                                                                NoAttrs
  multiply,   ///< a, b -> y                                                                NoAttrs
  concat,     ///< x0, x1, ... -> y along axis                                              AxisAttrs
  split,      ///< x -> y0, y1, ... along axis                                              AxisAttrs
  pad,        ///< x -> y: begin/end elements added on each axis                            PadAttrs
  crop,       ///< x -> y: begin/end elements taken away on each axis                       PadAttrs
  upsample,           ///< x -> y: spatial extents times factor (align_corners = false)     UpsampleAttrs
  upsample_backward,  ///< dy -> dx                                                         UpsampleAttrs
  reshape,    ///< x -> y of another shape, same elements in row-major order                NoAttrs
  transpose,  ///< x -> y: y's axis i is x's axis order[i]                                  TransposeAttrs
  softmax,           ///< x -> y along axis                                                 AxisAttrs
  softmax_backward,  ///< y, dy -> dx                                                       AxisAttrs

  cross_entropy,           ///< logits[N,K,...], labels(s32)[N,...] -> loss[1] (mean), probabilities[N,K,...]  NoAttrs
                           ///< a place with a negative label adds nothing
  cross_entropy_backward,  ///< probabilities, labels -> dlogits (of the mean)              NoAttrs
  count_correct,           ///< logits[N,K,...], labels(s32) -> count(s32)[1]               NoAttrs

  sgd_update,   ///< p, dp, (m) -> p', (m')                                                 SgdAttrs
  adam_update,  ///< p, dp, m, v -> p', m', v'                                              AdamAttrs

  // Between ranks; see ExchangeAttrs. What is on its way belongs to the network until the op that waits for it.
  reduce_start,  ///< dp0, dp1, ... -> bucket: one behind the other, and starts to average it over the ranks  ExchangeAttrs
  reduce_wait,   ///< bucket -> dp0', dp1', ...: the means, or of reduce_scatter this rank's part of them     ExchangeAttrs
  gather_start,  ///< p0, p1, ... -> bucket: this rank's part, and starts to gather the others'               ExchangeAttrs
  gather_wait,   ///< bucket, p0, p1, ... -> p0', p1', ...: whole parameters                                  ExchangeAttrs
  take_slice,    ///< x -> y[n]: a part of its memory, whatever its layout                                    SliceAttrs

  reorder,  ///< x -> y: same values in another layout                                      NoAttrs
};
// clang-format on

inline constexpr int kOpKinds = static_cast<int>(OpKind::reorder) + 1;

const char* op_name(OpKind kind);

/// Ops that do more than compute their outputs, and so run once in a step: data takes a batch, the others
/// talk to other ranks.
constexpr bool has_side_effects(OpKind kind) {
  return kind == OpKind::data || (kind >= OpKind::reduce_start && kind <= OpKind::gather_wait);
}

enum class Phase : std::uint8_t { forward, backward, update };
const char* phase_name(Phase phase);
/// Ops that wait for what other ranks send.
constexpr bool is_exchange_wait(OpKind kind) {
  return kind == OpKind::reduce_wait || kind == OpKind::gather_wait;
}

struct NoAttrs {
  bool operator==(const NoAttrs&) const = default;
};

/// One entry per spatial axis. Padding may differ at the two ends.
struct ConvAttrs {
  std::vector<std::int64_t> stride, dilation, padding_begin, padding_end;
  std::vector<std::int64_t> output_padding;  ///< conv_transpose only
  std::int64_t groups = 1;
  bool relu = false;  ///< y = max(0, conv(x)); the backward ops take dy already masked
  bool operator==(const ConvAttrs&) const = default;
};
struct LinearAttrs {
  bool relu = false;  ///< as ConvAttrs::relu
  bool operator==(const LinearAttrs&) const = default;
};
struct MatmulAttrs {
  bool transpose_a = false, transpose_b = false;  ///< of the last two axes
  float scale = 1;
  bool operator==(const MatmulAttrs&) const = default;
};
struct NormAttrs {
  float epsilon = 1e-5F;
  bool relu = false;  ///< ReLU fused behind (and behind the addition)
  bool add = false;   ///< a residual input is added before the ReLU
  bool mask = false;  ///< training: the ReLU's mask is an output
  bool operator==(const NormAttrs&) const = default;
};
/// running = (1 - momentum) * running + momentum * batch; the variance with count / (count - 1), as PyTorch
/// does.
struct StatisticsAttrs {
  float momentum = 0.1F;
  std::int64_t count = 0;  ///< elements per channel
  bool operator==(const StatisticsAttrs&) const = default;
};
enum class Activation : std::uint8_t { relu, leaky_relu, gelu, sigmoid, tanh };
const char* activation_name(Activation function);
struct ActivationAttrs {
  Activation function = Activation::relu;
  float alpha = 0.01F;  ///< slope of leaky_relu
  bool operator==(const ActivationAttrs&) const = default;
};
struct PoolAttrs {
  std::vector<std::int64_t> kernel, stride, padding_begin, padding_end;
  bool count_include_pad = true;  ///< average pooling
  bool operator==(const PoolAttrs&) const = default;
};
/// y = x / (k + alpha / size * sum of x^2 over `size` channels) ^ beta
struct LrnAttrs {
  std::int64_t size = 5;
  float alpha = 1e-4F, beta = 0.75F, k = 1;
  bool operator==(const LrnAttrs&) const = default;
};
struct DropoutAttrs {
  float probability = 0.5F;
  std::uint32_t key = 0;  ///< which dropout of the network; part of the random key
  bool operator==(const DropoutAttrs&) const = default;
};
struct AxisAttrs {
  std::int64_t axis = 1;
  bool operator==(const AxisAttrs&) const = default;
};
struct PadAttrs {
  std::vector<std::int64_t> begin, end;  ///< one entry per axis of the tensor
  float value = 0;
  bool operator==(const PadAttrs&) const = default;
};
struct UpsampleAttrs {
  std::vector<std::int64_t> factor;  ///< one entry per spatial axis
  bool bilinear = false;             ///< linear along each axis; otherwise nearest
  bool operator==(const UpsampleAttrs&) const = default;
};
struct TransposeAttrs {
  std::vector<std::int64_t> order;
  bool operator==(const TransposeAttrs&) const = default;
};
/// `begin`: the update is of dp's elements only, which lie in p from there on; m and v have dp's shape.
struct SgdAttrs {
  float momentum = 0, weight_decay = 0;
  bool nesterov = false;
  std::int64_t begin = 0;
  bool operator==(const SgdAttrs&) const = default;
};
struct AdamAttrs {
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F, weight_decay = 0;
  bool decoupled = false;  ///< AdamW
  std::int64_t begin = 0;
  bool operator==(const AdamAttrs&) const = default;
};
/// How ranks average an array, by slices of rank_slice(): all get all of it, or each gets its own slice and
/// (all_gather) what became of it is brought together again.
enum class ExchangeKind : std::uint8_t { all_reduce, reduce_scatter, all_gather };
const char* exchange_name(ExchangeKind kind);
struct ExchangeAttrs {
  std::int32_t bucket = 0;  ///< a start and its wait have the same; no other pair of the step has
  ExchangeKind kind = ExchangeKind::all_reduce;
  std::int32_t rank = 0, ranks = 1;
  /// Of gather_wait: where in each parameter the gathered elements belong, in its memory; the rest stays.
  std::vector<std::int64_t> begins, counts;
  bool operator==(const ExchangeAttrs&) const = default;
};
struct SliceAttrs {
  std::int64_t begin = 0;  ///< in elements; how many is the output's shape
  bool operator==(const SliceAttrs&) const = default;
};

using Attrs = std::variant<NoAttrs, ConvAttrs, LinearAttrs, MatmulAttrs, NormAttrs, StatisticsAttrs,
                           ActivationAttrs, PoolAttrs, LrnAttrs, DropoutAttrs, AxisAttrs, PadAttrs,
                           UpsampleAttrs, TransposeAttrs, SgdAttrs, AdamAttrs, ExchangeAttrs, SliceAttrs>;

/// "stride 2, padding 1, groups 32"; empty for NoAttrs. Equal attributes have equal texts: kernels are cached
/// by it.
std::string attrs_text(const Attrs& attrs);

struct Op {
  OpKind kind = OpKind::data;
  Phase phase = Phase::forward;
  std::string name;
  std::vector<TensorId> inputs, outputs;
  Attrs attrs;

  template <typename T>
  const T& attrs_as() const {
    return std::get<T>(attrs);
  }
};

}  // namespace penstock::ir
