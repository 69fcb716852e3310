#pragma once

#include <span>

#include "kernels/native/function_kernel.h"

/// Kernels of transformers. Shapes are those of the op's inputs.
namespace penstock::kernels::native {

using ShapeList = std::vector<ir::Shape>;

// attention_kernels.cpp
std::shared_ptr<const Kernel> make_attention(const ir::AttentionAttrs& attrs, const ShapeList& in,
                                             bool kept_mask);
std::shared_ptr<const Kernel> make_attention_backward(const ir::AttentionAttrs& attrs, const ShapeList& in,
                                                      bool kept_mask);

// linear_kernels.cpp
std::shared_ptr<const Kernel> make_linear(const ir::LinearAttrs& attrs, const ShapeList& in);
std::shared_ptr<const Kernel> make_linear_backward_data(const ir::LinearAttrs& attrs, const ShapeList& in);
/// The bias' part of the op below: the second output is the sum of the second input's rows.
std::shared_ptr<const Kernel> make_linear_backward_bias(std::int64_t rows, std::int64_t outputs);
/// `rows`: of the weights whose gradient is made, from attrs.begin on.
std::shared_ptr<const Kernel> make_linear_backward_weights(const ir::LinearAttrs& attrs, const ShapeList& in,
                                                           std::int64_t rows, bool has_bias);

// embedding_kernels.cpp
std::shared_ptr<const Kernel> make_embedding(const ShapeList& in);
std::shared_ptr<const Kernel> make_embedding_backward(const ir::EmbeddingAttrs& attrs, const ShapeList& in,
                                                      const ir::Shape& dw);
std::shared_ptr<const Kernel> make_position_backward(const ir::Shape& dy, const ir::Shape& dp);
std::shared_ptr<const Kernel> make_rotary(const ir::RotaryAttrs& attrs, const ir::Shape& x);

// row_kernels.cpp
std::shared_ptr<const Kernel> make_row_norm(const ir::LayerNormAttrs& attrs, const ir::Shape& x);
std::shared_ptr<const Kernel> make_row_norm_backward(const ir::LayerNormAttrs& attrs, const ir::Shape& x);
std::shared_ptr<const Kernel> make_gate(const ir::GateAttrs& attrs, std::int64_t count, bool gated);
std::shared_ptr<const Kernel> make_gate_backward(const ir::GateAttrs& attrs, std::int64_t count, bool gated);
std::shared_ptr<const Kernel> make_sum_squares(const ShapeList& in);
std::shared_ptr<const Kernel> make_clip_scale(const ir::ClipAttrs& attrs, std::size_t count);

// output_loss_kernels.cpp
std::shared_ptr<const Kernel> make_linear_cross_entropy(const ir::OutputLossAttrs& attrs,
                                                        const ShapeList& in);
std::shared_ptr<const Kernel> make_linear_cross_entropy_backward(const ir::OutputLossAttrs& attrs,
                                                                 const ShapeList& in, std::int64_t rows);

}  // namespace penstock::kernels::native
