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
using ir::Program;
using ir::ProgramWriter;
using ir::TensorId;

/// What a kernel can hold at a time, forward and backward.
constexpr std::int32_t kMostValues = 60;
constexpr std::int32_t kMostInputs = 12;

class ProgramFuser {
 public:
  explicit ProgramFuser(ir::Graph graph)
      : graph_(std::move(graph)), readers_(graph_.tensors.size(), 0), gone_(graph_.ops.size(), false) {
    for (const Op& op : graph_.ops) {
      for (const TensorId input : op.inputs) ++readers_[at(input)];
    }
  }

  ir::Graph run() {
    bool fused = false;
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      while (absorb_producer(graph_.ops[i])) fused = true;
    }
    if (!fused) return std::move(graph_);
    return without_ops(std::move(graph_), gone_);
  }

 private:
  static std::size_t at(std::int32_t id) { return static_cast<std::size_t>(id); }

  /// What the op does for each element, if that is all it does.
  static std::optional<Program> program_of(const Op& op) {
    switch (op.kind) {
      case OpKind::pointwise:
        return op.attrs_as<ir::PointwiseAttrs>().program;
      case OpKind::add:
        return ir::named_function("add");
      case OpKind::multiply:
        return ir::named_function("mul");
      case OpKind::activation: {
        const auto& attrs = op.attrs_as<ir::ActivationAttrs>();
        const bool leaky = attrs.function == ir::Activation::leaky_relu;
        return ir::named_function(ir::activation_name(attrs.function),
                                  leaky ? std::vector<float>{attrs.alpha} : std::vector<float>{});
      }
      default:
        return std::nullopt;
    }
  }

  /// The only use of `tensor` is in one op, and nobody outside the step looks at it.
  bool is_private(TensorId tensor) const { return readers_[at(tensor)] == 1 && tensor != graph_.loss; }

  /// Takes over what makes one of the op's inputs, if that works.
  bool absorb_producer(Op& op) {
    const std::optional<Program> program = program_of(op);
    if (!program) return false;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const TensorId input = op.inputs[i];
      const OpId maker = graph_.tensor(input).producer;
      if (maker == kNone || gone_[at(maker)] || !is_private(input)) continue;
      const Op& before = graph_.op(maker);
      if (before.kind != OpKind::pointwise && op.kind != OpKind::pointwise) continue;
      if (before.outputs.size() != 1 || !same_elements(input, op.outputs[0])) continue;
      const std::optional<Program> earlier = program_of(before);
      if (!earlier || !absorb(op, *program, i, before, *earlier)) continue;
      gone_[at(maker)] = true;
      return true;
    }
    return false;
  }

  /// Not of a smaller tensor that is repeated, because its values would be computed again and again.
  bool same_elements(TensorId a, TensorId b) const {
    const ir::Tensor& x = graph_.tensor(a);
    return x.dtype == ir::DType::f32 && x.shape.elements() == graph_.tensor(b).shape.elements() &&
           x.shape == graph_.tensor(b).shape;
  }

  bool absorb(Op& op, const Program& program, std::size_t place, const Op& before, const Program& earlier) {
    std::vector<TensorId> inputs;
    const auto number = [&](TensorId id) {
      const auto found = std::find(inputs.begin(), inputs.end(), id);
      if (found == inputs.end()) inputs.push_back(id);
      return static_cast<std::int32_t>(std::find(inputs.begin(), inputs.end(), id) - inputs.begin());
    };
    std::vector<std::int32_t> of_op, of_before;
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      of_op.push_back(i == place ? -1 : number(op.inputs[i]));
    for (const TensorId id : before.inputs) of_before.push_back(number(id));
    if (static_cast<std::int32_t>(inputs.size()) > kMostInputs) return false;
    ProgramWriter writer(static_cast<std::int32_t>(inputs.size()));
    of_op[place] = writer.insert(earlier, of_before)[0];
    const Program joined = writer.finish(writer.insert(program, of_op));
    if (!fits(joined)) return false;
    op.kind = OpKind::pointwise;
    op.attrs = ir::PointwiseAttrs{joined};
    op.inputs = inputs;
    // An input that both read is read once now.
    for (const TensorId id : op.inputs) readers_[at(id)] = 0;
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      if (gone_[i] || &graph_.ops[i] == &before) continue;
      for (const TensorId id : graph_.ops[i].inputs) {
        if (std::find(op.inputs.begin(), op.inputs.end(), id) != op.inputs.end()) ++readers_[at(id)];
      }
    }
    return true;
  }

  static bool fits(const Program& program) {
    std::vector<std::int32_t> all;
    for (std::int32_t i = 0; i < program.inputs; ++i) all.push_back(i);
    return ir::values_held(program) <= kMostValues &&
           ir::values_held(ir::gradient_of(program, all)) <= kMostValues;
  }

  ir::Graph graph_;
  std::vector<int> readers_;
  std::vector<bool> gone_;
};

}  // namespace

ir::Graph fuse_programs(ir::Graph forward) {
  return ProgramFuser(std::move(forward)).run();
}

}  // namespace penstock::lower
