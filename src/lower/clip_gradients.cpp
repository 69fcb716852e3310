#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "lower/passes.h"

namespace penstock::lower {
namespace {

using ir::Op;
using ir::OpKind;
using ir::Phase;
using ir::TensorId;

class Clipper {
 public:
  Clipper(Executable& executable, kernels::Backend& backend, const LowerOptions& options)
      : result_(executable), graph_(executable.graph), backend_(backend), options_(options) {}

  void run() {
    const LongVector<Op> ops = std::move(graph_.ops);
    const auto kernels = std::move(result_.kernels);
    graph_.ops.clear();
    result_.kernels.clear();
    result_.scratch_bytes.clear();
    for (std::size_t i = 0; i < ops.size(); ++i) take(ops[i], kernels[i]);
    if (squares_.empty() && !is_sharded()) return;
    const TensorId scale = append_scale();
    if (only_updates_) reverse_updates();
    for (Waiting& waiting : waiting_) {
      if (!ir::is_update(waiting.op.kind)) {
        append(std::move(waiting.op), std::move(waiting.kernel));
        continue;
      }
      ir::clip_update(waiting.op, scale);
      append(std::move(waiting.op));
    }
  }

 private:
  /// An op that stands behind the norm.
  struct Waiting {
    Op op;
    std::shared_ptr<const kernels::Kernel> kernel;
  };

  bool is_sharded() const { return options_.exchange.ranks > 1 && options_.exchange.shard_optimizer; }

  void append(Op op, std::shared_ptr<const kernels::Kernel> kernel) {
    append_op(result_, std::move(op), std::move(kernel));
  }
  void append(Op op) { append_op(result_, backend_, std::move(op)); }

  TensorId add_number(const std::string& name) {
    return graph_.add_tensor(name, ir::DType::f32, {1}, ir::Role::gradient);
  }

  TensorId root_of(TensorId id) const {
    const auto root = root_.find(id);
    return root != root_.end() ? root->second : id;
  }

  void take(Op op, std::shared_ptr<const kernels::Kernel> kernel) {
    if (ir::is_update(op.kind)) {
      gradient_scale_ = ir::gradient_scale(op);
      const std::string name = graph_.tensor(op.inputs[1]).name + ".squares";
      squares_.push_back(add_number(name));
      append({OpKind::sum_squares, Phase::backward, name, {op.inputs[1]}, {squares_.back()}, ir::NoAttrs{}});
      root_[op.outputs[0]] = root_of(op.inputs[0]);
      return wait(std::move(op), std::move(kernel));
    }
    const bool is_behind = std::any_of(op.inputs.begin(), op.inputs.end(),
                                       [&](TensorId id) { return made_later_.contains(id); });
    if (is_behind && op.phase != Phase::update) {
      // Backward reads a part of a parameter that its update leaves alone.
      for (TensorId& id : op.inputs) id = root_of(id);
      return append(std::move(op), std::move(kernel));
    }
    if (!is_behind && op.kind != OpKind::take_slice) return append(std::move(op), std::move(kernel));
    if (op.kind == OpKind::gather_wait) {
      for (std::size_t i = 0; i < op.outputs.size(); ++i) root_[op.outputs[i]] = root_of(op.inputs[i + 1]);
    }
    only_updates_ = false;
    wait(std::move(op), std::move(kernel));
  }

  void wait(Op op, std::shared_ptr<const kernels::Kernel> kernel) {
    made_later_.insert(op.outputs.begin(), op.outputs.end());
    waiting_.push_back({std::move(op), std::move(kernel)});
  }

  /// From the sums of squares to the factor of all gradients, and the norm as an output.
  TensorId append_scale() {
    ir::ClipAttrs attrs{options_.clip_norm, gradient_scale_ * gradient_scale_};
    if (is_sharded()) {
      squares_ = {sum_of_ranks()};
      attrs.weight *= static_cast<float>(options_.exchange.ranks);
    }
    const TensorId scale = add_number("gradients.scale");
    const TensorId norm = add_number(kGradientNorm);
    append({OpKind::clip_scale, Phase::update, "gradients.scale", squares_, {scale, norm}, attrs});
    const auto port = static_cast<std::int32_t>(graph_.outputs.size());
    graph_.outputs.push_back({kGradientNorm, norm});
    append({OpKind::output, Phase::update, kGradientNorm, {norm}, {}, ir::PortAttrs{port}});
    return scale;
  }

  /// Each rank has parts of the gradients: the mean over ranks of the squares of their norms.
  TensorId sum_of_ranks() {
    if (squares_.empty()) squares_.push_back(append_zero());
    const TensorId unused = add_number("gradients.own.scale");
    const TensorId norm = add_number("gradients.own.norm");
    append({OpKind::clip_scale, Phase::update, "gradients.own", squares_, {unused, norm}, ir::ClipAttrs{}});
    const TensorId square = add_number("gradients.own.squares");
    append({OpKind::sum_squares, Phase::update, "gradients.own.squares", {norm}, {square}, ir::NoAttrs{}});
    std::int32_t bucket = 0;
    for (const Op& op : graph_.ops) bucket = next_bucket(op, bucket);
    for (const Waiting& waiting : waiting_) bucket = next_bucket(waiting.op, bucket);
    const ir::ExchangeAttrs attrs{
        bucket, ir::ExchangeKind::all_reduce, options_.exchange.rank, options_.exchange.ranks, {}, {}};
    const TensorId moving = add_number("gradients.squares");
    graph_.tensor(moving).pinned = true;
    append({OpKind::reduce_start, Phase::update, "gradients.squares.start", {square}, {moving}, attrs});
    const TensorId mean = add_number("gradients.squares.mean");
    append({OpKind::reduce_wait, Phase::update, "gradients.squares.wait", {moving}, {mean}, attrs});
    return mean;
  }

  static std::int32_t next_bucket(const Op& op, std::int32_t bucket) {
    const auto* exchange = op.attrs.get_if<ir::ExchangeAttrs>();
    return exchange != nullptr ? std::max(bucket, exchange->bucket + 1) : bucket;
  }

  TensorId append_zero() {
    ir::ProgramWriter writer(1);
    const ir::Program zero = writer.finish({writer.constant(0)});
    const TensorId made = add_number("gradients.own.none");
    append({OpKind::pointwise,
            Phase::update,
            "gradients.own.none",
            {graph_.loss},
            {made},
            ir::PointwiseAttrs{zero}});
    return made;
  }

  /// The gradients made last are those that are still in memory: their updates come first. Updates of slices
  /// of one parameter then take their turns the other way round.
  void reverse_updates() {
    std::unordered_map<TensorId, std::vector<TensorId>> made;  // by parameter, in the order of its updates
    for (const Waiting& waiting : waiting_)
      made[root_of(waiting.op.inputs[0])].push_back(waiting.op.outputs[0]);
    std::reverse(waiting_.begin(), waiting_.end());
    std::unordered_map<TensorId, std::size_t> done;
    for (Waiting& waiting : waiting_) {
      const TensorId root = root_of(waiting.op.inputs[0]);
      const std::vector<TensorId>& chain = made.at(root);
      const std::size_t turn = done[root]++;
      waiting.op.inputs[0] = turn == 0 ? root : chain[turn - 1];
      waiting.op.outputs[0] = chain[turn];
    }
  }

  Executable& result_;
  ir::Graph& graph_;
  kernels::Backend& backend_;
  const LowerOptions& options_;
  std::vector<Waiting> waiting_;
  std::vector<TensorId> squares_;                ///< one number a gradient
  std::unordered_map<TensorId, TensorId> root_;  ///< by updated parameter: as the step found it
  std::unordered_set<TensorId> made_later_;      ///< what ops behind the norm make
  float gradient_scale_ = 1;
  bool only_updates_ = true;  ///< nothing else stands behind the norm
};

}  // namespace

void clip_gradients(Executable& executable, kernels::Backend& backend, const LowerOptions& options) {
  Clipper(executable, backend, options).run();
}

}  // namespace penstock::lower
