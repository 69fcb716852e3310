#include "ir/check_op.h"

#include <fmt/format.h>

#include "ir/infer.h"
#include "ir/op_table.h"

namespace penstock::ir {
namespace {

/// What an input or output of an op may hold: labels and counts are s32, workspaces are their kernel's
/// business.
enum class Holds : std::uint8_t { floats, integers, anything };

Holds input_holds(OpKind kind, std::size_t index) {
  switch (kind) {
    case OpKind::cross_entropy:
    case OpKind::cross_entropy_backward:
    case OpKind::count_correct:
      return index == 1 ? Holds::integers : Holds::floats;
    case OpKind::max_pool_backward:
      return index == 1 ? Holds::anything : Holds::floats;
    case OpKind::batch_norm_backward:
      return index == 5 ? Holds::anything : Holds::floats;
    case OpKind::reorder:
      return Holds::anything;
    default:
      return Holds::floats;
  }
}

Holds output_holds(OpKind kind, std::size_t index) {
  switch (kind) {
    case OpKind::data:
      return index == 1 ? Holds::integers : Holds::floats;
    case OpKind::count_correct:
      return Holds::integers;
    case OpKind::max_pool:
    case OpKind::batch_norm:
      return index == 1 ? Holds::anything : Holds::floats;
    case OpKind::reorder:
      return Holds::anything;
    default:
      return Holds::floats;
  }
}

bool fits(DType dtype, Holds holds) {
  return holds == Holds::anything || dtype == (holds == Holds::integers ? DType::s32 : DType::f32);
}

/// Checks the shapes of one op; first() is the first thing found wrong.
class ShapeCheck {
 public:
  ShapeCheck(const Graph& graph, const Op& op) : op_(op) {
    for (const TensorId id : op.inputs) in_.push_back(graph.tensor(id).shape);
    for (const TensorId id : op.outputs) out_.push_back(graph.tensor(id).shape);
  }

  std::string first() {
    check();
    return std::move(problem_);
  }

 private:
  void fail(std::string text) {
    if (problem_.empty()) problem_ = std::move(text);
  }
  void same(const Shape& have, const Shape& need, const std::string& what) {
    if (have != need)
      fail(fmt::format("{} is {} where {} is needed", what, have.to_string(), need.to_string()));
  }
  void inputs_same(std::size_t first, std::size_t last, const Shape& need) {
    for (std::size_t i = first; i < last; ++i) same(in_[i], need, fmt::format("input {}", i));
  }
  void outputs_same(std::size_t first, std::size_t last, const Shape& need) {
    for (std::size_t i = first; i < last; ++i) same(out_[i], need, fmt::format("output {}", i));
  }
  /// The outputs are what the inputs decide; a workspace's shape is not looked at.
  void forward() {
    const Inferred inferred = infer_shapes(op_.kind, op_.attrs, in_);
    if (!inferred.problem.empty()) return fail(inferred.problem);
    const bool drops_indices = op_.kind == OpKind::max_pool && out_.size() == 1;
    if (inferred.shapes.size() != out_.size() && !drops_indices) {
      return fail(fmt::format("{} outputs where {} are needed", out_.size(), inferred.shapes.size()));
    }
    for (std::size_t i = 0; i < out_.size(); ++i) {
      if (output_holds(op_.kind, i) == Holds::anything && op_.kind != OpKind::reorder) continue;
      same(out_[i], inferred.shapes[i], fmt::format("output {}", i));
    }
  }
  /// A forward op of kind `kind` on `inputs` would have made dy.
  void backward_of(OpKind kind, const std::vector<Shape>& inputs, const Shape& dy) {
    const Inferred inferred = infer_shapes(kind, op_.attrs, inputs);
    if (!inferred.problem.empty()) return fail(inferred.problem);
    same(dy, inferred.shapes[0], "the gradient of the result");
  }
  /// Has `groups` times as many elements as the weights' axis.
  void bias_gradient(std::size_t axis, std::int64_t groups) {
    if (!problem_.empty() || out_.size() < 2) return;
    same(out_[1], Shape{out_[0][axis] * groups}, "the bias gradient");
  }
  /// It holds the parts one behind the other; their layouts may take more than their elements.
  void bucket(const Shape& whole, const std::vector<Shape>& parts) {
    std::int64_t elements = 0;
    for (const Shape& part : parts) elements += part.elements();
    if (whole.rank() != 1 || whole[0] < elements) {
      fail(fmt::format("a bucket of {} cannot hold {} elements", whole.to_string(), elements));
    }
  }
  void check();
  void batch_norm_backward();
  void layer_norm_backward();

  const Op& op_;
  std::vector<Shape> in_, out_;
  std::string problem_;
};

void ShapeCheck::batch_norm_backward() {
  const auto& attrs = op_.attrs_as<NormAttrs>();
  if (in_.size() != (attrs.mask ? 6U : 5U)) return fail("a mask and the attribute `mask` go together");
  if (attrs.relu != attrs.mask) return fail("the gradient of a fused ReLU needs its mask");
  if (out_.size() != (attrs.add ? 4U : 3U))
    return fail("a residual gradient and the attribute `add` go together");
  if (in_[0].rank() < 2) return fail("x has no channels");
  same(in_[1], in_[0], "dy");
  inputs_same(2, 5, Shape{in_[0][1]});
  same(out_[0], in_[0], "dx");
  outputs_same(1, 3, Shape{in_[0][1]});
  outputs_same(3, out_.size(), in_[0]);
}

void ShapeCheck::layer_norm_backward() {
  const Inferred inferred = infer_shapes(OpKind::layer_norm, op_.attrs, {in_[0], in_[2], in_[2]});
  if (!inferred.problem.empty()) return fail(inferred.problem);
  same(in_[1], in_[0], "dy");
  inputs_same(3, 5, inferred.shapes[1]);
  same(out_[0], in_[0], "dx");
  outputs_same(1, 3, in_[2]);
}

void ShapeCheck::check() {
  switch (op_.kind) {
    case OpKind::data:
      return;
    case OpKind::conv_backward_data:
      return backward_of(OpKind::conv, {out_[0], in_[1]}, in_[0]);
    case OpKind::conv_backward_weights:
      backward_of(OpKind::conv, {in_[0], out_[0]}, in_[1]);
      return bias_gradient(0, 1);
    case OpKind::conv_transpose_backward_data:
      return backward_of(OpKind::conv_transpose, {out_[0], in_[1]}, in_[0]);
    case OpKind::conv_transpose_backward_weights:
      backward_of(OpKind::conv_transpose, {in_[0], out_[0]}, in_[1]);
      return bias_gradient(1, op_.attrs_as<ConvAttrs>().groups);
    case OpKind::linear_backward_data:
      return backward_of(OpKind::linear, {out_[0], in_[1]}, in_[0]);
    case OpKind::linear_backward_weights:
      backward_of(OpKind::linear, {in_[0], out_[0]}, in_[1]);
      return bias_gradient(0, 1);
    case OpKind::bias_backward:
      return backward_of(OpKind::bias, {in_[0], out_[0]}, in_[0]);
    case OpKind::batch_norm_backward:
      return batch_norm_backward();
    case OpKind::layer_norm_backward:
      return layer_norm_backward();
    case OpKind::max_pool_backward:
      return backward_of(OpKind::max_pool, {out_[0]}, in_[0]);
    case OpKind::avg_pool_backward:
      return backward_of(OpKind::avg_pool, {out_[0]}, in_[0]);
    case OpKind::global_avg_pool_backward:
      return backward_of(OpKind::global_avg_pool, {out_[0]}, in_[0]);
    case OpKind::upsample_backward:
      return backward_of(OpKind::upsample, {out_[0]}, in_[0]);
    case OpKind::activation_backward:
    case OpKind::lrn_backward:
    case OpKind::dropout_backward:
    case OpKind::softmax_backward:
      inputs_same(1, in_.size(), in_[0]);
      return outputs_same(0, 1, in_[0]);
    case OpKind::cross_entropy_backward: {
      const Inferred inferred = infer_shapes(OpKind::cross_entropy, op_.attrs, in_);
      if (!inferred.problem.empty()) return fail(inferred.problem);
      return outputs_same(0, 1, in_[0]);
    }
    case OpKind::reshape:
      if (in_[0].elements() != out_[0].elements()) {
        fail(fmt::format("{} has other elements than {}", out_[0].to_string(), in_[0].to_string()));
      }
      return;
    case OpKind::reduce_start:
    case OpKind::gather_start:
      return bucket(out_[0], in_);
    case OpKind::reduce_wait:
      return bucket(in_[0], out_);
    case OpKind::gather_wait:
      if (in_.size() != out_.size() + 1) return fail("it makes another number of parameters than it takes");
      for (std::size_t i = 0; i < out_.size(); ++i) same(out_[i], in_[i + 1], fmt::format("output {}", i));
      if (op_.attrs_as<ExchangeAttrs>().counts.size() != out_.size()) fail("it does not say what goes where");
      return;
    case OpKind::take_slice:
      if (out_[0].rank() != 1) fail("a slice has one extent");
      return;
    case OpKind::split: {
      const Inferred inferred = infer_shapes(OpKind::concat, op_.attrs, out_);
      if (!inferred.problem.empty()) return fail(inferred.problem);
      return same(in_[0], inferred.shapes[0], "the input");
    }
    default:
      return forward();
  }
}

}  // namespace

std::string check_op(const Graph& graph, const Op& op) {
  const OpInfo& info = op_info(op.kind);
  if (op.attrs.index() != info.attrs) return "it has attributes of another op";
  if (op.inputs.size() < info.min_inputs || op.inputs.size() > info.max_inputs) {
    return fmt::format("it does not take {} inputs", op.inputs.size());
  }
  if (op.outputs.size() < info.min_outputs || op.outputs.size() > info.max_outputs) {
    return fmt::format("it does not make {} outputs", op.outputs.size());
  }
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const Tensor& tensor = graph.tensor(op.inputs[i]);
    if (!fits(tensor.dtype, input_holds(op.kind, i))) {
      return fmt::format("input {} may not be {}", tensor.name, dtype_name(tensor.dtype));
    }
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const Tensor& tensor = graph.tensor(op.outputs[i]);
    if (!fits(tensor.dtype, output_holds(op.kind, i))) {
      return fmt::format("output {} may not be {}", tensor.name, dtype_name(tensor.dtype));
    }
  }
  if (op.kind == OpKind::reorder && graph.tensor(op.inputs[0]).dtype != graph.tensor(op.outputs[0]).dtype) {
    return "it may not change the dtype";
  }
  return ShapeCheck(graph, op).first();
}

}  // namespace penstock::ir
