#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/attrs.h"
#include "ir/id_list.h"
#include "ir/tensor.h"

namespace penstock::ir {

/// Every op of a training step. Inputs -> outputs in brackets; (x) is present or absent, g = groups.
/// N batch, C channels, "..." one to three spatial extents. All float32 unless said otherwise.
// clang-format off
enum class OpKind : std::uint8_t {
  input,   ///< [] -> x(any): the caller of the step writes it                               PortAttrs
  output,  ///< x(any) -> []: the caller of the step reads it                                PortAttrs

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
  // Batch norm on slices of the batch, see lower/cut_batch.cpp.
  combine_statistics,        ///< mean0, variance0, mean1, variance1, ... of slices -> mean[C], variance[C]  CombineAttrs
  batch_norm_backward_sums,  ///< x, dy, mean, variance, (mask) -> dgamma, dbeta of this slice, (dz)  NormAttrs
  batch_norm_backward_data,  ///< x, dy, gamma, mean, variance, dgamma, dbeta, (mask) -> dx; dgamma and dbeta of the whole batch  NormAttrs
                             ///< no mask where dy is the dz of the sums
  // Of batch norm with SiLU behind it, which need gamma and beta to make again what SiLU was given.
  batch_norm_silu_backward,       ///< x, dy, gamma, beta, mean, variance -> dx, dgamma, dbeta  NormAttrs
  batch_norm_silu_backward_sums,  ///< x, dy, gamma, beta, mean, variance -> dgamma, dbeta of this slice  NormAttrs
  batch_norm_silu_backward_data,  ///< x, dy, gamma, beta, mean, variance, dgamma, dbeta -> dx  NormAttrs
  statistics_update,      ///< running_mean, running_var, mean, variance -> running_mean', running_var'  StatisticsAttrs

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

  log_softmax,           ///< x -> y along axis                                             AxisAttrs
  log_softmax_backward,  ///< y, dy -> dx                                                   AxisAttrs

  pointwise,  ///< x0, x1, ... -> y0, y1, ...: a program for each element. Inputs of any type broadcast, by
              ///< NumPy's rule, to the outputs' common shape, which may be larger still  PointwiseAttrs
  reduce,     ///< x -> y over axes, whose extents become 1, or of that many elements in any shape  ReduceAttrs
  argmax,     ///< x -> s32: the first place of the largest along axis, whose extent becomes 1  AxisAttrs
  slice,           ///< x -> y: every so many elements on each axis, any type                StridedAttrs
  slice_backward,  ///< dy -> dx: zero where nothing was taken                               StridedAttrs
  gather,           ///< x, indices(s32)[k...] -> y: along axis x[..., indices[k...], ...]   AxisAttrs
  gather_backward,  ///< dy, indices -> dx: what was taken often is added in the indices' order  AxisAttrs

  nll_loss,           ///< log-probabilities[N,K,...], labels(s32)[N,...], (class weights[K]) -> loss[1], weight[1] of what counts  NllAttrs
  nll_loss_backward,  ///< labels, weight, dloss[1], (class weights) -> gradient of the log-probabilities  NllAttrs
  cross_entropy,           ///< logits[N,K,...], labels(s32)[N,...] -> loss[1] (mean), probabilities[N,K,...]  MeanAttrs
                           ///< a place with a negative label adds nothing
  cross_entropy_backward,  ///< probabilities, labels -> dlogits (of the mean)              MeanAttrs
  count_correct,           ///< logits[N,K,...], labels(s32), (count so far) -> count(s32)[1]  NoAttrs

  // Transformers; D a row's width, see ir/text_attrs.h for layouts.
  attention,           ///< (qkv) or (q, k, v), (mask: f32 added to the scores, or u8: 0 hides) -> y, log-sums[B,heads,S]  AttentionAttrs
  attention_backward,  ///< (qkv) or (q, k, v), y, log-sums, dy, (mask) -> (dqkv) or (dq, dk, dv)  AttentionAttrs
  layer_norm,          ///< x[...,D], gamma[D], (beta[D]), (z) -> y, (mean[rows]), variance[rows], (x + z)  LayerNormAttrs
                       ///< no beta and mean if attrs.rms; z and x + z if attrs.add
  layer_norm_backward, ///< x, dy, gamma, (mean), variance, (gradient that is added to dx) -> dx, dgamma, (dbeta)  LayerNormAttrs
  embedding,           ///< tokens(s32)[...,S], w[V,D], (p[P,D]) -> y[...,S,D]: w's row of each token (of a negative one 0), plus p's row of each position  NoAttrs
  embedding_backward,  ///< tokens, dy, (dw so far) -> dw                                   EmbeddingAttrs
  position_backward,   ///< dy -> dp                                                        NoAttrs
  rotary,              ///< x[...,S,heads D] -> y                                           RotaryAttrs
  gate,                ///< a, (b) -> y = f(a) (b)                                          GateAttrs
  gate_backward,       ///< a, (b), dy -> da, (db)                                          GateAttrs
  linear_cross_entropy,           ///< x[...,D], w[V,D], labels(s32)[...] -> loss[1], log-sums[rows]: mean over labels that are not negative  OutputLossAttrs
  linear_cross_entropy_backward,  ///< x, w, labels, log-sums, (dx so far) -> dx, dw        OutputLossAttrs
  sum_squares,         ///< x0, x1, ... -> y[1]                                             NoAttrs
  clip_scale,          ///< sums of squares s0, s1, ... -> y[1] = min(1, norm / n), n[1] = sqrt(weight (s0 + s1 + ...))  ClipAttrs

  sgd_update,   ///< p, dp, (m), (scale[1]) -> p', (m')                                     SgdAttrs
  adam_update,  ///< p, dp, m, v, (scale[1]) -> p', m', v'                                  AdamAttrs

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

/// Ops that do more than compute their outputs, and so run once in a step: inputs and outputs talk to the
/// caller, the others to other ranks.
bool has_side_effects(OpKind kind);
/// Ops that wait for what other ranks send.
bool is_exchange_wait(OpKind kind);

enum class Phase : std::uint8_t { forward, backward, update };
const char* phase_name(Phase phase);

struct Op {
  OpKind kind = OpKind::input;
  Phase phase = Phase::forward;
  Name name;
  IdList inputs, outputs;  ///< tensors
  Attrs attrs;

  template <typename T>
  const T& attrs_as() const {
    return attrs.get<T>();
  }
};

/// sgd_update or adam_update.
bool is_update(OpKind kind);
/// Of an update: where in the parameter the elements lie that the op updates.
std::int64_t update_begin(const Op& op);
void set_update_begin(Op& op, std::int64_t begin);
/// Of an update: what it multiplies the gradient by.
float gradient_scale(const Op& op);
void set_gradient_scale(Op& op, float scale);
/// Gives an update the factor `scale`, a tensor, as its last input.
void clip_update(Op& op, TensorId scale);

}  // namespace penstock::ir
