#include <algorithm>
#include <optional>

#include "ir/functions.h"
#include "lower/passes.h"

namespace penstock::lower {
namespace {

using ir::kNone;
using ir::Op;
using ir::OpId;
using ir::OpKind;
using ir::TensorId;

/// A ReLU, or one with a ceiling (ReLU6).
struct Relu {
  float ceiling = 0;  ///< 0: none
};

/// The ceiling if the program is hardtanh from 0 on, else none.
std::optional<Relu> relu_with_ceiling(const ir::Program& program) {
  for (const ir::Step& step : program.steps) {
    if (step.function != ir::Function::constant || !(step.value > 0)) continue;
    if (program == ir::named_function("hardtanh", {0, step.value})) return Relu{step.value};
  }
  return std::nullopt;
}

std::optional<Relu> as_relu(const Op& op) {
  if (op.kind == OpKind::pointwise) return relu_with_ceiling(op.attrs_as<ir::PointwiseAttrs>().program);
  if (op.kind != OpKind::activation) return std::nullopt;
  if (op.attrs_as<ir::ActivationAttrs>().function != ir::Activation::relu) return std::nullopt;
  return Relu{};
}

bool is_silu(const Op& op) {
  return op.kind == OpKind::pointwise &&
         op.attrs_as<ir::PointwiseAttrs>().program == ir::named_function("silu");
}

/// Finds each ReLU's pattern (or SiLU's) and puts the fused op in its place; the ops before it vanish.
class Fuser {
 public:
  explicit Fuser(const ir::Graph& forward)
      : graph_(forward), readers_(ir::consumers(forward)), gone_(forward.ops.size(), false) {}

  ir::Graph run() {
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      Op& op = graph_.ops[i];
      const std::optional<Relu> relu = as_relu(op);
      if (relu) fuse_relu(op, relu->ceiling);
      if (is_silu(op)) fuse_silu(op);
    }
    return without_ops(std::move(graph_), gone_);
  }

 private:
  /// The op that made `tensor`, if this is its only use.
  OpId sole_producer(TensorId tensor) const {
    return readers_[static_cast<std::size_t>(tensor)].size() == 1 ? graph_.tensor(tensor).producer : kNone;
  }
  /// Of a batch norm: nothing is fused into it yet.
  static bool is_bare(const Op& norm) {
    const auto& attrs = norm.attrs_as<ir::NormAttrs>();
    return !attrs.relu && !attrs.add && !attrs.silu;
  }
  const Op* producer_op(OpId id) const { return id != kNone ? &graph_.op(id) : nullptr; }
  void drop(OpId id) { gone_[static_cast<std::size_t>(id)] = true; }

  bool fuse_relu(Op& relu, float ceiling) {
    const OpId before = sole_producer(relu.inputs[0]);
    const Op* op = producer_op(before);
    if (op == nullptr) return false;
    if (ceiling > 0 && op->kind != OpKind::batch_norm && op->kind != OpKind::add) return false;
    switch (op->kind) {
      case OpKind::conv:
      case OpKind::conv_transpose: {
        auto attrs = op->attrs_as<ir::ConvAttrs>();
        attrs.relu = true;
        replace(relu, before, attrs);
        return true;
      }
      case OpKind::linear: {
        auto attrs = op->attrs_as<ir::LinearAttrs>();
        attrs.relu = true;
        replace(relu, before, attrs);
        return true;
      }
      case OpKind::batch_norm:
        if (!is_bare(*op)) return false;
        replace_norm(relu, before, ceiling);
        return true;
      case OpKind::add:
        return fuse_add(relu, before, ceiling);
      default:
        return false;
    }
  }

  /// batch norm -> add -> ReLU. Of two batch norms the later one takes the other's result as what is added.
  bool fuse_add(Op& relu, OpId add_id, float ceiling) {
    const Op add = graph_.op(add_id);
    if (add.inputs[0] == add.inputs[1]) return false;
    OpId norm = kNone;
    for (const TensorId input : add.inputs) {
      const OpId id = sole_producer(input);
      const Op* op = producer_op(id);
      if (op == nullptr || op->kind != OpKind::batch_norm) continue;
      if (is_bare(*op)) norm = std::max(norm, id);
    }
    if (norm == kNone) return false;
    const TensorId other = add.inputs[0] == graph_.op(norm).outputs[0] ? add.inputs[1] : add.inputs[0];
    replace_norm(relu, norm, ceiling);
    relu.inputs.push_back(other);
    auto attrs = relu.attrs_as<ir::NormAttrs>();
    attrs.add = true;
    relu.attrs = attrs;
    drop(add_id);
    return true;
  }

  void fuse_silu(Op& silu) {
    const OpId before = sole_producer(silu.inputs[0]);
    const Op* op = producer_op(before);
    if (op == nullptr || op->kind != OpKind::batch_norm || !is_bare(*op)) return;
    auto attrs = op->attrs_as<ir::NormAttrs>();
    attrs.silu = true;
    replace(silu, before, attrs);
  }

  void replace_norm(Op& relu, OpId norm_id, float ceiling) {
    auto attrs = graph_.op(norm_id).attrs_as<ir::NormAttrs>();
    attrs.relu = true;
    attrs.ceiling = ceiling;
    const Op* statistics = producer_op(graph_.tensor(graph_.op(norm_id).inputs[3]).producer);
    attrs.mask = statistics != nullptr && statistics->kind == OpKind::batch_norm_statistics;
    replace(relu, norm_id, attrs);
    if (!attrs.mask) return;
    const ir::Shape shape = graph_.tensor(relu.outputs[0]).shape;
    relu.outputs.push_back(graph_.add_tensor(relu.name + ".mask", ir::DType::u8, shape, ir::Role::workspace));
  }

  /// The ReLU becomes the op before it, with the ReLU's output.
  void replace(Op& relu, OpId id, const ir::Attrs& attrs) {
    const Op& before = graph_.op(id);
    relu.kind = before.kind;
    relu.name = before.name;
    relu.inputs = before.inputs;
    relu.attrs = attrs;
    drop(id);
  }

  ir::Graph graph_;
  Rows<OpId> readers_;
  std::vector<bool> gone_;
};

}  // namespace

ir::Graph fuse(const ir::Graph& forward) {
  return fuse_programs(read_in_place(join_slices(Fuser(forward).run())));
}

}  // namespace penstock::lower
