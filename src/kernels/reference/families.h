#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"
#include "kernels/kernel.h"

namespace penstock::kernels::reference {

/// What an op of given shapes does to its arrays. All arrays are in plain order.
using Body = std::function<void(const KernelArgs& args)>;

/// An op with the shapes of its tensors; lives while its body is made.
struct Described {
  const ir::Op& op;
  std::vector<ir::Shape> in, out;
  std::vector<ir::DType> in_types = {}, out_types = {};

  template <typename T>
  const T& attrs() const {
    return op.attrs_as<T>();
  }
};

inline const float* floats_in(const KernelArgs& args, std::size_t index) {
  return static_cast<const float*>(args.inputs[index]);
}
inline float* floats_out(const KernelArgs& args, std::size_t index) {
  return static_cast<float*>(args.outputs[index]);
}

/// The body of any op but a reorder.
Body make_body(const Described& d);

// conv.cpp
Body conv(const Described& d);
Body conv_backward_data(const Described& d);
Body conv_backward_weights(const Described& d);
Body conv_transpose(const Described& d);
Body conv_transpose_backward_data(const Described& d);
Body conv_transpose_backward_weights(const Described& d);
// product.cpp
Body linear(const Described& d);
Body linear_backward_data(const Described& d);
Body linear_backward_weights(const Described& d);
Body matmul(const Described& d);
Body bias(const Described& d);
Body bias_backward(const Described& d);
// batch_norm.cpp
Body batch_norm_statistics(const Described& d);
Body batch_norm(const Described& d);
Body batch_norm_backward(const Described& d);
Body batch_norm_backward_sums(const Described& d);
Body batch_norm_backward_data(const Described& d);
Body combine_statistics(const Described& d);
Body statistics_update(const Described& d);
// layer_norm.cpp
Body layer_norm(const Described& d);
Body layer_norm_backward(const Described& d);
// attention.cpp
Body attention(const Described& d);
Body attention_backward(const Described& d);
// text.cpp
Body embedding(const Described& d);
Body embedding_backward(const Described& d);
Body position_backward(const Described& d);
Body rotary(const Described& d);
Body gate(const Described& d);
Body gate_backward(const Described& d);
Body linear_cross_entropy(const Described& d);
Body linear_cross_entropy_backward(const Described& d);
Body sum_squares(const Described& d);
Body clip_scale(const Described& d);
// lrn.cpp
Body lrn(const Described& d);
Body lrn_backward(const Described& d);
// pointwise.cpp
Body activation(const Described& d);
Body activation_backward(const Described& d);
Body dropout(const Described& d);
Body add(const Described& d);
Body multiply(const Described& d);
// pool.cpp
Body max_pool(const Described& d);
Body max_pool_backward(const Described& d);
Body avg_pool(const Described& d);
Body avg_pool_backward(const Described& d);
Body global_avg_pool(const Described& d);
Body global_avg_pool_backward(const Described& d);
// upsample.cpp
Body upsample(const Described& d);
Body upsample_backward(const Described& d);
// shape.cpp
Body concat(const Described& d);
Body split(const Described& d);
Body pad(const Described& d);
Body crop(const Described& d);
Body copy(const Described& d);
Body transpose(const Described& d);
// program.cpp
Body pointwise(const Described& d);
Body reduce(const Described& d);
// index.cpp
Body slice(const Described& d);
Body slice_backward(const Described& d);
Body gather(const Described& d);
Body gather_backward(const Described& d);
Body argmax(const Described& d);
// nll.cpp
Body nll_loss(const Described& d);
Body nll_loss_backward(const Described& d);
// softmax.cpp
Body log_softmax(const Described& d);
Body log_softmax_backward(const Described& d);
Body softmax(const Described& d);
Body softmax_backward(const Described& d);
Body cross_entropy(const Described& d);
Body cross_entropy_backward(const Described& d);
Body count_correct(const Described& d);
// update.cpp
Body sgd_update(const Described& d);
Body adam_update(const Described& d);

}  // namespace penstock::kernels::reference
