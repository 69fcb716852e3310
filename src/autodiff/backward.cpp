#include "autodiff/backward.h"

#include <fmt/format.h>

#include <algorithm>

#include "autodiff/rules.h"
#include "base/error.h"

namespace penstock::autodiff {
namespace {

using ir::Graph;
using ir::kNone;
using ir::Op;
using ir::OpId;
using ir::TensorId;

std::size_t at(std::int32_t id) {
  return static_cast<std::size_t>(id);
}

/// Walks the forward ops backwards and runs each one's rule. Only ops between a parameter and a seed are
/// looked at.
class BackwardBuilder : public RuleContext {
 public:
  BackwardBuilder(Graph& graph, const OnGradient& on_gradient)
      : graph_(graph),
        on_gradient_(on_gradient),
        forward_ops_(graph.ops.size()),
        needs_(graph.tensors.size(), false),
        leads_(graph.tensors.size(), false),
        seeded_(graph.tensors.size(), false),
        gradients_(graph.tensors.size(), kNone),
        made_(graph.tensors.size(), 0),
        active_(graph.ops.size(), false),
        first_use_(graph.tensors.size(), kNone) {}

  void seed(TensorId tensor, TensorId gradient) {
    leads_[at(tensor)] = true;
    seeded_[at(tensor)] = true;
    gradients_[at(tensor)] = gradient;
  }

  void run() {
    find_needs();
    find_active();
    for (std::size_t i = forward_ops_; i-- > 0;) {
      if (!active_[i]) continue;
      op_ = graph_.ops[i];
      // Steps such as floor and sign pass no gradient on: what only they read has none.
      if (has_gradient()) rule_of(op_.kind)(*this);
      report_complete(static_cast<OpId>(i));
    }
  }

  const Op& op() const override { return op_; }
  const ir::Shape& shape(TensorId tensor) const override { return graph_.tensor(tensor).shape; }
  TensorId gradient(std::size_t output) const override { return gradients_[at(op_.outputs[output])]; }
  bool needs(std::size_t input) const override {
    return is_differentiable(op_.kind, input) && needs_[at(op_.inputs[input])];
  }
  bool is_made_by(std::size_t input, ir::OpKind kind) const override {
    const OpId producer = graph_.tensor(op_.inputs[input]).producer;
    return producer != kNone && graph_.op(producer).kind == kind;
  }

  std::vector<TensorId> emit(ir::OpKind kind, const std::string& suffix, std::vector<TensorId> inputs,
                             ir::Attrs attrs, const std::vector<std::size_t>& of_inputs) override {
    std::vector<TensorId> outputs;
    outputs.reserve(of_inputs.size());
    for (const std::size_t input : of_inputs) outputs.push_back(make_gradient(op_.inputs[input]));
    append(kind, op_.name + "." + suffix, inputs, outputs, std::move(attrs));
    for (std::size_t i = 0; i < outputs.size(); ++i) pass(of_inputs[i], outputs[i]);
    return outputs;
  }

  TensorId gradient_so_far(std::size_t input) const override { return gradients_[at(op_.inputs[input])]; }
  void replace(std::size_t input, TensorId gradient) override {
    gradients_[at(op_.inputs[input])] = gradient;
  }

  TensorId emit_intermediate(ir::OpKind kind, const std::string& suffix, std::vector<TensorId> inputs,
                             ir::Attrs attrs, TensorId like) override {
    const TensorId output = add_gradient(graph_.tensor(like).name + ".grad." + suffix, like);
    append(kind, op_.name + "." + suffix, inputs, {output}, std::move(attrs));
    return output;
  }

  std::vector<TensorId> emit_shaped(ir::OpKind kind, const std::string& suffix, std::vector<TensorId> inputs,
                                    ir::Attrs attrs, const std::vector<ir::Shape>& shapes) override {
    std::vector<TensorId> outputs;
    for (const ir::Shape& shape : shapes) {
      const std::string name = op_.name + "." + suffix + ".grad" + std::to_string(unnamed_++);
      outputs.push_back(graph_.add_tensor(name, ir::DType::f32, shape, ir::Role::gradient));
    }
    append(kind, op_.name + "." + suffix, inputs, outputs, std::move(attrs));
    return outputs;
  }

  void pass(std::size_t input, TensorId gradient) override {
    if (!needs(input)) return;
    const TensorId tensor = op_.inputs[input];
    TensorId& sum = gradients_[at(tensor)];
    if (sum == kNone) {
      sum = gradient;
      return;
    }
    // The finished sum has the plain name; what was taken for it so far becomes a part.
    const std::string name = graph_.tensor(tensor).name + ".grad";
    if (graph_.tensor(sum).name == name) graph_.tensor(sum).name = name + ".0";
    const TensorId total = add_gradient(name, tensor);
    append(ir::OpKind::add, name, {sum, gradient}, {total}, ir::NoAttrs{});
    sum = total;
  }

 private:
  void find_needs() {
    for (std::size_t t = 0; t < graph_.tensors.size(); ++t) {
      const ir::Tensor& tensor = graph_.tensors[t];
      needs_[t] = tensor.role == ir::Role::parameter && tensor.producer == kNone;
    }
    for (const Op& op : graph_.ops) {
      refuse_trained_mask(op);
      if (!has_needed_input(op)) continue;
      for (const TensorId output : op.outputs)
        needs_[at(output)] = graph_.tensor(output).dtype == ir::DType::f32;
    }
  }

  bool has_gradient() const {
    return std::any_of(op_.outputs.begin(), op_.outputs.end(),
                       [&](TensorId t) { return gradients_[at(t)] != kNone || seeded_[at(t)]; });
  }

  bool has_needed_input(const Op& op) const {
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      if (is_differentiable(op.kind, i) && needs_[at(op.inputs[i])]) return true;
    }
    return false;
  }

  /// The kernel makes no gradient of a mask, so that one which is trained would stay as it is, unnoticed.
  void refuse_trained_mask(const Op& op) const {
    if (op.kind != ir::OpKind::attention || op.inputs.size() < 4 || !needs_[at(op.inputs[3])]) return;
    throw UserError(fmt::format(
        "the mask of attention '{}' depends on parameters, which would get no gradient from it; write "
        "this attention with matmul and softmax, or freeze them",
        op.name));
  }

  void find_active() {
    for (std::size_t i = forward_ops_; i-- > 0;) {
      const Op& op = graph_.ops[i];
      const bool leads =
          std::any_of(op.outputs.begin(), op.outputs.end(), [&](TensorId t) { return leads_[at(t)]; });
      if (!leads || !has_needed_input(op)) continue;
      active_[i] = true;
      for (std::size_t k = 0; k < op.inputs.size(); ++k) {
        if (is_differentiable(op.kind, k)) leads_[at(op.inputs[k])] = true;
        first_use_[at(op.inputs[k])] = static_cast<OpId>(i);
      }
    }
  }

  /// Parameters whose first use was this op: no op that is still to come adds to their gradients or reads
  /// them.
  void report_complete(OpId id) {
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
      const TensorId tensor = op_.inputs[i];
      const bool is_parameter =
          graph_.tensor(tensor).role == ir::Role::parameter && graph_.tensor(tensor).producer == kNone;
      if (!is_parameter || first_use_[at(tensor)] != id || gradients_[at(tensor)] == kNone) continue;
      first_use_[at(tensor)] = kNone;
      on_gradient_(graph_, tensor, gradients_[at(tensor)]);
    }
  }

  TensorId add_gradient(std::string name, TensorId like) {
    return graph_.add_tensor(std::move(name), ir::DType::f32, graph_.tensor(like).shape, ir::Role::gradient);
  }

  TensorId make_gradient(TensorId of) {
    const int number = made_[at(of)]++;
    const std::string name = graph_.tensor(of).name + ".grad";
    return add_gradient(number == 0 ? name : name + "." + std::to_string(number), of);
  }

  void append(ir::OpKind kind, std::string name, const std::vector<TensorId>& inputs,
              const std::vector<TensorId>& outputs, ir::Attrs attrs) {
    require(std::find(inputs.begin(), inputs.end(), kNone) == inputs.end(),
            "append_backward: a gradient is needed of an output that has none");
    graph_.add_op({kind, ir::Phase::backward, std::move(name), inputs, outputs, std::move(attrs)});
  }

  Graph& graph_;
  const OnGradient& on_gradient_;
  std::size_t forward_ops_;
  // By tensor of the forward graph.
  std::vector<bool> needs_;          ///< a parameter leads to it
  std::vector<bool> leads_;          ///< it leads to a seed
  std::vector<bool> seeded_;         ///< it is a seed; a loss's own gradient is not a tensor
  std::vector<TensorId> gradients_;  ///< the sum so far
  std::vector<int> made_;            ///< gradient tensors made for it
  // By forward op.
  std::vector<bool> active_;
  std::vector<OpId> first_use_;  ///< by tensor: the first active op that reads it
  int unnamed_ = 0;              ///< gradients made so far that belong to no tensor
  Op op_;                        ///< a copy: the list of ops grows while its rule runs
};

}  // namespace

void append_backward(ir::Graph& graph, ir::TensorId loss, const OnGradient& on_gradient) {
  const OpId producer = graph.tensor(loss).producer;
  require(producer != kNone && graph.tensor(loss).shape.elements() == 1,
          "append_backward: the loss is not one number that an op makes");
  const ir::OpKind kind = graph.op(producer).kind;
  // A cross-entropy makes its own gradient; that of any other loss begins with 1.
  TensorId one = kNone;
  if (kind != ir::OpKind::cross_entropy && kind != ir::OpKind::linear_cross_entropy) {
    ir::ProgramWriter writer(1);
    const ir::Program ones = writer.finish({writer.constant(1)});
    one = graph.add_tensor(graph.tensor(loss).name + ".grad", ir::DType::f32, graph.tensor(loss).shape,
                           ir::Role::gradient);
    graph.add_op({ir::OpKind::pointwise,
                  ir::Phase::backward,
                  graph.tensor(loss).name + ".grad",
                  {loss},
                  {one},
                  ir::PointwiseAttrs{ones}});
  }
  BackwardBuilder builder(graph, on_gradient);
  builder.seed(loss, one);
  builder.run();
}

void append_backward(ir::Graph& graph, std::span<const Seed> seeds, const OnGradient& on_gradient) {
  BackwardBuilder builder(graph, on_gradient);
  for (const Seed& seed : seeds) builder.seed(seed.tensor, seed.gradient);
  builder.run();
}

}  // namespace penstock::autodiff
