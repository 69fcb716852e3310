#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace penstock::autodiff {

/// What a gradient rule sees of the backward builder: one forward op, the gradients of its outputs, and the
/// means to append backward ops and to hand gradients to its inputs. Lives while the rule runs.
class RuleContext {
 public:
  virtual ~RuleContext() = default;

  /// The forward op.
  virtual const ir::Op& op() const = 0;
  virtual const ir::Shape& shape(ir::TensorId tensor) const = 0;
  /// Gradient of the op's output `output`; kNone if nothing that leads to the loss reads it.
  virtual ir::TensorId gradient(std::size_t output) const = 0;
  /// Whether the gradient of the op's input `input` is wanted: never of integers and masks.
  virtual bool needs(std::size_t input) const = 0;
  /// Whether an op of this kind makes the op's input `input`.
  virtual bool is_made_by(std::size_t input, ir::OpKind kind) const = 0;

  /// Appends a backward op named after the forward op, whose outputs are the gradients of the forward op's
  /// inputs `of_inputs`, hands them over where they are wanted, and returns them.
  virtual std::vector<ir::TensorId> emit(ir::OpKind kind, const std::string& suffix,
                                         std::vector<ir::TensorId> inputs, ir::Attrs attrs,
                                         const std::vector<std::size_t>& of_inputs) = 0;
  /// Appends a backward op with one output that is an intermediate gradient, shaped like `like`.
  virtual ir::TensorId emit_intermediate(ir::OpKind kind, const std::string& suffix,
                                         std::vector<ir::TensorId> inputs, ir::Attrs attrs,
                                         ir::TensorId like) = 0;
  /// Appends a backward op whose outputs are intermediate gradients of these shapes.
  virtual std::vector<ir::TensorId> emit_shaped(ir::OpKind kind, const std::string& suffix,
                                                std::vector<ir::TensorId> inputs, ir::Attrs attrs,
                                                const std::vector<ir::Shape>& shapes) = 0;
  /// Hands an existing tensor over as (a part of) the gradient of input `input`, if that is wanted.
  virtual void pass(std::size_t input, ir::TensorId gradient) = 0;
  /// What ops behind this one have given to the gradient of input `input`; kNone: nothing.
  virtual ir::TensorId gradient_so_far(std::size_t input) const = 0;
  /// Hands over a tensor that holds gradient_so_far(input) and this op's part.
  virtual void replace(std::size_t input, ir::TensorId gradient) = 0;

  ir::TensorId in(std::size_t index) const { return op().inputs[index]; }
  ir::TensorId out(std::size_t index) const { return op().outputs[index]; }
  /// Gradient of the only output that has one.
  ir::TensorId dy() const { return gradient(0); }
};

using Rule = void (*)(RuleContext&);

/// The gradient rule of a forward op; null for ops that have none.
Rule rule_of(ir::OpKind kind);

/// Whether a gradient flows from the outputs to input `input` of an op of this kind.
bool is_differentiable(ir::OpKind kind, std::size_t input);

// rules_conv.cpp
void conv_rule(RuleContext& context);
void conv_transpose_rule(RuleContext& context);
void linear_rule(RuleContext& context);
void matmul_rule(RuleContext& context);
void bias_rule(RuleContext& context);
// rules_norm.cpp
void batch_norm_rule(RuleContext& context);
void lrn_rule(RuleContext& context);
// rules_pointwise.cpp
void activation_rule(RuleContext& context);
void dropout_rule(RuleContext& context);
void add_rule(RuleContext& context);
void multiply_rule(RuleContext& context);
void softmax_rule(RuleContext& context);
void log_softmax_rule(RuleContext& context);
void cross_entropy_rule(RuleContext& context);
// rules_text.cpp
void attention_rule(RuleContext& context);
void layer_norm_rule(RuleContext& context);
void embedding_rule(RuleContext& context);
void rotary_rule(RuleContext& context);
void gate_rule(RuleContext& context);
void linear_cross_entropy_rule(RuleContext& context);
// rules_pool.cpp
void max_pool_rule(RuleContext& context);
void avg_pool_rule(RuleContext& context);
void global_avg_pool_rule(RuleContext& context);
void upsample_rule(RuleContext& context);
// rules_program.cpp
void pointwise_rule(RuleContext& context);
void reduce_rule(RuleContext& context);
// rules_index.cpp
void slice_rule(RuleContext& context);
void gather_rule(RuleContext& context);
void nll_rule(RuleContext& context);
// rules_shape.cpp
void concat_rule(RuleContext& context);
void split_rule(RuleContext& context);
void pad_rule(RuleContext& context);
void crop_rule(RuleContext& context);
void reshape_rule(RuleContext& context);
void transpose_rule(RuleContext& context);

}  // namespace penstock::autodiff
