#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "lower/lower.h"

namespace penstock::lower {
namespace {

using ir::kNone;
using ir::Op;
using ir::OpId;
using ir::OpKind;
using ir::Phase;
using ir::TensorId;

/// An input of at most this share of what is made of it may be held for it.
constexpr std::int64_t kSmallShare = 16;
/// So many ops may run again for one value, one on what the other makes.
constexpr int kDeepest = 8;
/// Sums of two wide values come in long chains (a residual stream), of which one in four is held; of those
/// that batch norm makes, where three passes over the widest values are dear, every other one.
constexpr int kDeepestSum = 3;
constexpr int kDeepestNormedSum = 1;
constexpr int kNever = 1 << 20;

std::size_t index_of(std::int32_t id) {
  return static_cast<std::size_t>(id);
}

/// Ops that make one pass over memory.
bool is_cheap(const Op& op) {
  switch (op.kind) {
    case OpKind::batch_norm:
    case OpKind::pointwise:
    case OpKind::activation:
    case OpKind::multiply:
    case OpKind::dropout:
    case OpKind::layer_norm:
    case OpKind::gate:
    case OpKind::reshape:
    case OpKind::transpose:
      return true;
    default:
      return false;
  }
}

/// The op that makes output `made` again, of tensors that are held anyway.
Op again(const Op& op) {
  Op result = op;
  result.phase = Phase::backward;
  result.name = op.name.with(".again");
  if (op.kind == OpKind::batch_norm) {
    auto attrs = op.attrs_as<ir::NormAttrs>();
    attrs.mask = false;
    result.attrs = attrs;
    result.outputs.shorten(1);
  }
  if (op.kind == OpKind::layer_norm && op.attrs_as<ir::LayerNormAttrs>().add) {
    // The sum is held for the op's own backward, its parts are not.
    auto attrs = op.attrs_as<ir::LayerNormAttrs>();
    attrs.add = false;
    result.attrs = attrs;
    result.inputs[0] = result.outputs.back();
    result.inputs.pop_back();
    result.outputs.pop_back();
  }
  return result;
}

class Repeater {
 public:
  Repeater(ir::Graph graph, std::int64_t least_bytes)
      : graph_(std::move(graph)),
        least_bytes_(least_bytes),
        first_read_(graph_.tensors.size(), kNone),
        last_read_(graph_.tensors.size(), kNone),
        replaced_(graph_.tensors.size(), static_cast<OpId>(graph_.ops.size())),
        depth_(graph_.tensors.size(), 0) {
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      const Op& op = graph_.ops[i];
      if (op.phase != Phase::backward) continue;
      for (const TensorId input : op.inputs) {
        if (first_read_[index_of(input)] == kNone) first_read_[index_of(input)] = static_cast<OpId>(i);
        last_read_[index_of(input)] = static_cast<OpId>(i);
      }
    }
    for (const ir::Carried& state : graph_.carried) {
      if (state.end != state.begin) replaced_[index_of(state.begin)] = graph_.tensor(state.end).producer;
    }
  }

  ir::Graph run() {
    choose();
    LongVector<Op> ops;
    std::swap(ops, graph_.ops);
    for (Op& op : ops) {
      if (op.phase == Phase::backward) {
        for (TensorId& input : op.inputs) {
          if (is_repeated(input)) input = made_again(input);
        }
      }
      graph_.add_op(std::move(op));
    }
    return std::move(graph_);
  }

 private:
  bool is_repeated(TensorId id) const { return index_of(id) < depth_.size() && depth_[index_of(id)] > 0; }

  /// In the order of the ops, so that what an op reads is decided before it.
  void choose() {
    for (const Op& op : graph_.ops) {
      if (op.phase != Phase::forward || !is_cheap(op)) continue;
      const TensorId made = op.outputs[0];
      const OpId when = first_read_[index_of(made)];
      if (when == kNone || graph_.tensor(made).size_bytes() < least_bytes_) continue;
      Recipe recipe;
      const int depth = depth_of(op, when, kDeepest, recipe);
      if (depth > kDeepest) continue;
      depth_[index_of(made)] = depth;
      recipes_.emplace(made, std::move(recipe));
    }
  }

  /// What must be made on the way to a value because backward does not read it at all.
  using Recipe = std::unordered_set<TensorId>;

  /// How many ops must run again, one on what the other makes, to make the op's output again at `when`;
  /// kNever where that cannot be, or takes more than `most`.
  int depth_of(const Op& op, OpId when, int most, Recipe& recipe) const {
    if (most == 0) return kNever;
    const std::int64_t small = graph_.tensor(op.outputs[0]).size_bytes() / kSmallShare;
    int depth = 0, wide = 0;
    for (const TensorId input : again(op).inputs) {
      depth = std::max(depth, depth_at(input, when, small, most - 1, recipe));
      if (graph_.tensor(input).size_bytes() > small) ++wide;
    }
    ++depth;
    if (wide < 2) return depth;
    return depth <= (op.kind == OpKind::batch_norm ? kDeepestNormedSum : kDeepestSum) ? depth : kNever;
  }

  int depth_at(TensorId id, OpId when, std::int64_t small, int most, Recipe& recipe) const {
    const ir::Tensor& tensor = graph_.tensor(id);
    if (ir::is_state(tensor.role)) return replaced_[index_of(id)] > when ? 0 : kNever;
    if (last_read_[index_of(id)] >= when) return depth_[index_of(id)];
    if (tensor.size_bytes() <= small) return 0;
    if (tensor.producer == kNone) return kNever;
    const Op& maker = graph_.op(tensor.producer);
    if (maker.phase != Phase::forward || !is_cheap(maker) || maker.outputs[0] != id) return kNever;
    recipe.insert(id);
    return depth_of(maker, when, most, recipe);
  }

  /// What stands for `id` in backward; appends the ops that make it where this is its first use.
  TensorId made_again(TensorId id) {
    const auto known = made_.find(id);
    if (known != made_.end()) return known->second;
    const TensorId result = make(id, recipes_.at(id));
    made_.emplace(id, result);
    return result;
  }

  TensorId make(TensorId id, const Recipe& recipe) {
    // Forward ops stand before all that is inserted, so they are where they were.
    Op op = again(graph_.op(graph_.tensor(id).producer));
    for (TensorId& input : op.inputs) {
      if (recipe.contains(input)) {
        input = make(input, recipe);
      } else if (is_repeated(input)) {
        input = made_again(input);
      }
    }
    for (TensorId& output : op.outputs) {
      const ir::Tensor first = graph_.tensor(output);
      output = graph_.add_tensor(first.name + ".again", first.dtype, first.shape, first.role);
    }
    const TensorId result = op.outputs[0];
    graph_.add_op(std::move(op));
    return result;
  }

  ir::Graph graph_;
  std::int64_t least_bytes_;
  // By tensor of the step.
  std::vector<OpId> first_read_, last_read_;  ///< of backward
  std::vector<OpId> replaced_;                ///< of state: the op that updates it
  std::vector<int> depth_;                    ///< 0: held
  std::unordered_map<TensorId, Recipe> recipes_;
  std::unordered_map<TensorId, TensorId> made_;
};

}  // namespace

ir::Graph repeat_cheap(ir::Graph graph, std::int64_t least_bytes) {
  return Repeater(std::move(graph), least_bytes).run();
}

}  // namespace penstock::lower
