#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "lower/lower.h"
#include "lower/passes.h"

namespace penstock::lower {
namespace {

using ir::Op;
using ir::OpKind;
using ir::TensorId;

/// Writes a step out once for each micro-batch. The last one has the step's own tensors and names.
class Accumulator {
 public:
  Accumulator(ir::Graph graph, std::int64_t count) : graph_(std::move(graph)), count_(count) {}

  ir::Graph run() {
    std::swap(ops_, graph_.ops);
    const TensorId loss = graph_.loss;
    std::vector<TensorId> losses;
    for (const ir::Carried& state : graph_.carried) state_[state.begin] = state.begin;
    for (micro_ = 0; micro_ < count_; ++micro_) {
      here_.clear();
      for (const Op& op : ops_) append(op);
      losses.push_back(here(loss));
      // What the next one finds. Parameters and their optimizer's state change in the last one only.
      for (const ir::Carried& state : graph_.carried) {
        if (here_.contains(state.end)) state_[state.begin] = here_.at(state.end);
      }
    }
    const TensorId mean = append_mean(losses);
    for (const auto& [port, parts] : outputs_)
      append_output(port, parts == losses ? mean : join(port, parts));
    graph_.loss = mean;
    return compact(std::move(graph_));
  }

 private:
  bool is_last() const { return micro_ + 1 == count_; }
  std::string named(const std::string& name) const {
    return is_last() ? name : fmt::format("{}@{}", name, micro_ + 1);
  }
  TensorId add_like(TensorId like, std::string name, ir::Role role) {
    const ir::Tensor tensor = graph_.tensor(like);
    return graph_.add_tensor(std::move(name), tensor.dtype, tensor.shape, role);
  }

  /// What stands for a tensor of the step in this micro-batch.
  TensorId here(TensorId id) const {
    const auto found = here_.find(id);
    return found != here_.end() ? found->second : state_.at(id);
  }

  void append(const Op& op) {
    if (op.kind == OpKind::input) return append_input(op);
    if (op.kind == OpKind::output) {
      outputs_[op.attrs_as<ir::PortAttrs>().port].push_back(here(op.inputs[0]));
      return;
    }
    if (ir::is_update(op.kind)) return append_update(op);
    Op copy = op;
    copy.name = named(op.name);
    for (TensorId& id : copy.inputs) id = here(id);
    for (TensorId& id : copy.outputs) id = here_[id] = made_for(op, id);
    place_samples(copy);
    graph_.add_op(std::move(copy));
  }

  /// The tensor that this micro-batch writes in place of `id`. Running statistics change in place.
  TensorId made_for(const Op& op, TensorId id) {
    if (is_last()) return id;
    const ir::Tensor& tensor = graph_.tensor(id);
    if (op.kind == OpKind::statistics_update) return graph_.add_successor(id, named(tensor.name));
    return add_like(id, named(tensor.name), tensor.role);
  }

  /// The whole comes in once; each micro-batch takes its part.
  void append_input(const Op& op) {
    const TensorId part = op.outputs[0];
    const ir::Port& port = graph_.inputs[static_cast<std::size_t>(op.attrs_as<ir::PortAttrs>().port)];
    require(port.part_of == ir::kNone, "micro-batches are parts of whole inputs");
    ir::Tensor& tensor = graph_.tensor(part);
    if (tensor.shape.rank() == 0)
      throw UserError(
          fmt::format("input '{}' has no samples that micro-batches could share out", tensor.name));
    if (micro_ == 0) {
      ir::Shape shape = tensor.shape;
      shape.set(0, shape[0] * count_);
      samples_ = samples_ == 0 ? tensor.shape[0] : samples_;
      const TensorId whole = graph_.add_tensor(op.name, tensor.dtype, shape, ir::Role::input);
      wholes_[part] = whole;
      graph_.add_op({op.kind, op.phase, op.name, {}, {whole}, op.attrs});
      graph_.inputs[static_cast<std::size_t>(op.attrs_as<ir::PortAttrs>().port)].tensor = whole;
      graph_.tensor(part).role = ir::Role::activation;
    }
    const std::size_t rank = graph_.tensor(part).shape.rank();
    ir::StridedAttrs slice{std::vector<std::int64_t>(rank, 0), std::vector<std::int64_t>(rank, 1)};
    slice.begin[0] = micro_ * graph_.tensor(part).shape[0];
    const std::string name = named(op.name + ".part");
    const TensorId made = is_last() ? part : add_like(part, name, ir::Role::activation);
    graph_.tensor(made).name = name;
    here_[part] = made;
    graph_.add_op({OpKind::slice, ir::Phase::forward, name, {wholes_.at(part)}, {made}, slice});
  }

  /// Adds the gradient to those before; the last micro-batch updates by the sum.
  void append_update(const Op& op) {
    const TensorId gradient = here(op.inputs[1]);
    const auto [sum, is_first] = sums_.try_emplace(op.inputs[1], gradient);
    if (!is_first) {
      const std::string name = named(graph_.tensor(op.inputs[1]).name + ".sum");
      const TensorId total = add_like(gradient, name, ir::Role::gradient);
      graph_.add_op(
          {OpKind::add, ir::Phase::backward, name, {sum->second, gradient}, {total}, ir::NoAttrs{}});
      sum->second = total;
    }
    if (!is_last()) {
      // Who reads the updated parameter meanwhile reads it as it is.
      here_[op.outputs[0]] = here(op.inputs[0]);
      return;
    }
    Op update = op;
    update.inputs[1] = sum->second;
    for (const TensorId id : update.outputs) here_[id] = id;
    ir::set_gradient_scale(update, 1 / static_cast<float>(count_));
    graph_.add_op(std::move(update));
  }

  /// Dropout draws by a sample's place in the whole batch; what has been cut into slices knows its own
  /// within the micro-batch.
  void place_samples(Op& op) const {
    if (op.inputs.empty() || graph_.tensor(op.inputs[0]).shape.rank() == 0) return;
    const std::int64_t first = micro_ * std::max(samples_, graph_.tensor(op.inputs[0]).shape[0]);
    if (const auto* dropout = op.attrs.get_if<ir::DropoutAttrs>()) {
      auto attrs = *dropout;
      attrs.first_sample += first;
      op.attrs = attrs;
    } else if (const auto* attention = op.attrs.get_if<ir::AttentionAttrs>();
               attention != nullptr && attention->dropout > 0) {
      auto attrs = *attention;
      attrs.first_sample += first;
      op.attrs = attrs;
    }
  }

  TensorId append_mean(const std::vector<TensorId>& losses) {
    TensorId sum = losses[0];
    for (std::size_t i = 1; i < losses.size(); ++i) {
      const std::string name = fmt::format("loss.sum@{}", i + 1);
      const TensorId total = add_like(sum, name, ir::Role::activation);
      graph_.add_op({OpKind::add, ir::Phase::forward, name, {sum, losses[i]}, {total}, ir::NoAttrs{}});
      sum = total;
    }
    ir::ProgramWriter writer(1);
    const ir::Program scale = writer.finish({writer.multiply(0, 1 / static_cast<float>(count_))});
    const TensorId mean = add_like(sum, "loss.mean", ir::Role::activation);
    graph_.add_op(
        {OpKind::pointwise, ir::Phase::forward, "loss.mean", {sum}, {mean}, ir::PointwiseAttrs{scale}});
    return mean;
  }

  /// An output's values of all micro-batches, one behind the other.
  TensorId join(std::int32_t port, const std::vector<TensorId>& parts) {
    const std::string name = graph_.outputs[static_cast<std::size_t>(port)].name;
    const ir::Tensor part = graph_.tensor(parts[0]);
    if (part.dtype != ir::DType::f32 || part.shape.rank() == 0) {
      throw UserError(fmt::format(
          "output '{}' is {}{}: micro-batches join float32 of at least one axis; leave it to evaluation",
          name, ir::dtype_name(part.dtype), part.shape.to_string()));
    }
    ir::Shape shape = part.shape;
    shape.set(0, shape[0] * count_);
    const TensorId whole = graph_.add_tensor(name + ".whole", part.dtype, shape, part.role);
    graph_.add_op({OpKind::concat, ir::Phase::forward, name + ".whole", parts, {whole}, ir::AxisAttrs{0}});
    return whole;
  }

  void append_output(std::int32_t port, TensorId value) {
    ir::Port& to = graph_.outputs[static_cast<std::size_t>(port)];
    to.tensor = value;
    graph_.add_op(
        {OpKind::output, ir::Phase::forward, to.name + ".output", {value}, {}, ir::PortAttrs{port}});
  }

  ir::Graph graph_;
  std::int64_t count_;
  LongVector<Op> ops_;  ///< of the step on one micro-batch
  std::int64_t micro_ = 0;
  std::int64_t samples_ = 0;                               ///< of a micro-batch: the first input's
  std::unordered_map<TensorId, TensorId> here_;            ///< by tensor of the step: this micro-batch's
  std::unordered_map<TensorId, TensorId> state_;           ///< by state: as this micro-batch finds it
  std::unordered_map<TensorId, TensorId> sums_;            ///< by gradient of the step: the sum so far
  std::unordered_map<TensorId, TensorId> wholes_;          ///< by input of the step: that of all
  std::map<std::int32_t, std::vector<TensorId>> outputs_;  ///< by port, one a micro-batch
};

}  // namespace

ir::Graph accumulate(ir::Graph graph, std::int64_t count) {
  if (count <= 1) return graph;
  return Accumulator(std::move(graph), count).run();
}

}  // namespace penstock::lower
