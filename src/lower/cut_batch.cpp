#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ir/op_table.h"
#include "lower/lower.h"
#include "lower/passes.h"

namespace penstock::lower {
namespace {

using ir::Op;
using ir::OpKind;
using ir::TensorId;

/// What the neediest op of a network may have before it and behind it. Below, an op is too short to be worth
/// cutting; above, it decides how small a budget can be.
constexpr std::int64_t kSliceBytes = std::int64_t{160} << 20;

/// Samples [first, first + count) of the batch.
struct Samples {
  std::int64_t first, count;
};

/// As few slices as hold no more than `slice_samples` each, as equal as can be.
std::vector<Samples> slices_of(std::int64_t batch, std::int64_t slice_samples) {
  const std::int64_t slices = (batch + slice_samples - 1) / slice_samples;
  std::vector<Samples> all;
  for (std::int64_t k = 0; k < slices; ++k) {
    const std::int64_t first = batch * k / slices;
    all.push_back({first, batch * (k + 1) / slices - first});
  }
  return all;
}

/// What an op looks like to the rules of the op table.
struct Shaped {
  Shaped(const ir::Graph& graph, const Op& op) : attrs(op.attrs) {
    for (const TensorId id : op.inputs) in.push_back(graph.tensor(id).shape);
    for (const TensorId id : op.outputs) out.push_back(graph.tensor(id).shape);
  }
  ir::OpShapes shapes() const { return {attrs, in, out}; }

  const ir::Attrs& attrs;
  ir::Shapes in, out;
};

/// Calls f(letter, tensor) for each input and output of an op that the op table knows how to cut.
template <typename F>
void for_each_operand(const Op& op, const F& f) {
  const ir::OpFacts& facts = ir::op_facts(op.kind);
  for (std::size_t i = 0; i < op.inputs.size(); ++i) f(ir::letter_of(facts.cut_inputs, i), op.inputs[i]);
  for (std::size_t i = 0; i < op.outputs.size(); ++i) f(ir::letter_of(facts.cut_outputs, i), op.outputs[i]);
}

/// Whether the op can run on slices and has something to gain by it: all that has samples has `batch` of
/// them, and some of it is an image or a volume. Vectors of each sample are small.
bool is_cut(const ir::Graph& graph, const Op& op, std::int64_t batch) {
  const ir::OpFacts& facts = ir::op_facts(op.kind);
  if (facts.cut_inputs == nullptr) return false;
  bool fits = true, wide = false;
  for_each_operand(op, [&](char letter, TensorId id) {
    if (letter != 's') return;
    const ir::Shape& shape = graph.tensor(id).shape;
    fits = fits && shape.rank() > 0 && shape[0] == batch;
    wide = wide || (shape.rank() > 2 && shape.elements(2, shape.rank()) > 1);
  });
  return fits && wide && (facts.can_cut == nullptr || facts.can_cut(Shaped(graph, op).shapes()));
}

/// Ops in groups: those of a group run slice by slice, because none needs what another makes of the whole
/// batch. What does (sums, statistics, ops that are not cut) stands behind the group.
class BatchCutter {
 public:
  BatchCutter(ir::Graph graph, std::int64_t batch, std::int64_t slice_samples, CutInputs inputs)
      : cut_inputs_(inputs),
        graph_(std::move(graph)),
        batch_(batch),
        slices_(slices_of(batch, slice_samples)),
        order_(slices_.size()) {
    // Turned round before each group.
    std::iota(order_.rbegin(), order_.rend(), std::size_t{0});
  }

  ir::Graph run() {
    std::vector<Op> ops;
    std::swap(ops, graph_.ops);
    for (Op& op : ops) {
      if (op.kind == OpKind::input) {
        (comes_in_parts(op) ? inputs_in_parts_ : inputs_).push_back(std::move(op));
      } else if (op.kind == OpKind::batch_norm_backward && halves_are_cut(op)) {
        auto [sums, data] = halves(op);
        take(std::move(sums));
        take(std::move(data));
      } else {
        take(std::move(op));
      }
    }
    finish_group();
    if (!inputs_in_parts_.empty()) {
      for (std::size_t k = 0; k < slices_.size(); ++k) bring_in(k);
    }
    for (Op& op : inputs_) graph_.add_op(std::move(op));
    return compact(std::move(graph_));
  }

 private:
  /// Images and volumes, and labels for each of their points; a label or a vector a sample is small.
  bool comes_in_parts(const Op& input) const {
    const ir::Shape& shape = graph_.tensor(input.outputs[0]).shape;
    return cut_inputs_ == CutInputs::in_parts && shape.rank() > 2 && shape[0] == batch_;
  }

  void take(Op op) {
    if (!is_cut(graph_, op, batch_)) {
      if (group_.empty()) return append_whole(std::move(op));
      later_.insert(op.outputs.begin(), op.outputs.end());
      behind_.push_back(std::move(op));
      return;
    }
    const ir::OpFacts& facts = ir::op_facts(op.kind);
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const bool whole = ir::letter_of(facts.cut_inputs, i) == 'w';
      if (later_.contains(op.inputs[i]) || (whole && of_group_.contains(op.inputs[i]))) {
        finish_group();
        break;
      }
    }
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      (ir::letter_of(facts.cut_outputs, i) == 's' ? of_group_ : later_).insert(op.outputs[i]);
    }
    group_.push_back(std::move(op));
  }

  /// Batch norm's gradient needs two sums over the whole batch: they are made first.
  bool halves_are_cut(const Op& op) const {
    const ir::Shape& x = graph_.tensor(op.inputs[0]).shape;
    return x[0] == batch_ && x.rank() > 2 && x.elements(2, x.rank()) > 1;
  }

  std::pair<Op, Op> halves(const Op& op) const {
    auto attrs = op.attrs_as<ir::NormAttrs>();
    const auto& in = op.inputs;
    const TensorId dgamma = op.outputs[1], dbeta = op.outputs[2];
    ir::NormAttrs sums_attrs = attrs;
    sums_attrs.add = false;
    Op sums{OpKind::batch_norm_backward_sums, op.phase,        op.name + ".sums",
            {in[0], in[1], in[3], in[4]},     {dgamma, dbeta}, sums_attrs};
    const ir::Shape& x = graph_.tensor(in[0]).shape;
    attrs.count = x[0] * x.elements(2, x.rank());
    Op data{OpKind::batch_norm_backward_data,
            op.phase,
            op.name,
            {in[0], in[1], in[2], in[3], in[4], dgamma, dbeta},
            {op.outputs[0]},
            attrs};
    if (attrs.mask) {
      sums.inputs.push_back(in[5]);
      data.inputs.push_back(in[5]);
    }
    if (attrs.add) data.outputs.push_back(op.outputs[3]);
    return {std::move(sums), std::move(data)};
  }

  void finish_group() {
    std::vector<Op> group, behind;
    std::swap(group, group_);
    std::swap(behind, behind_);
    of_group_.clear();
    later_.clear();
    if (!group.empty()) std::reverse(order_.begin(), order_.end());
    if (order_.front() != 0) bring_all_in(group);
    for (const std::size_t k : order_) {
      if (reads_inputs_in_parts(group)) bring_in(k);
      for (const Op& op : group) append_slice(op, k);
    }
    for (const Op& op : group) {
      if (op.kind == OpKind::batch_norm_statistics) append_combination(op);
    }
    for (Op& op : behind) append_whole(std::move(op));
  }

  void append_whole(Op op) {
    bring_all_in({op});
    for (const TensorId id : op.inputs) make_whole(id);
    graph_.add_op(std::move(op));
  }

  bool reads_inputs_in_parts(const std::vector<Op>& ops) const {
    const auto is_read = [&](const Op& input) {
      return std::any_of(ops.begin(), ops.end(), [&](const Op& op) {
        return std::find(op.inputs.begin(), op.inputs.end(), input.outputs[0]) != op.inputs.end();
      });
    };
    return std::any_of(inputs_in_parts_.begin(), inputs_in_parts_.end(), is_read);
  }

  /// The caller gives slice after slice, each with all that belongs to it, so these come in together, in
  /// order, when the first of them is needed.
  void bring_in(std::size_t k) {
    for (const Op& op : inputs_in_parts_) {
      const TensorId whole = op.outputs[0];
      const auto port = op.attrs_as<ir::PortAttrs>().port;
      ir::Shape shape = graph_.tensor(whole).shape;
      shape[0] = slices_[k].count;
      const TensorId part = graph_.add_input(fmt::format("{}.{}", graph_.tensor(whole).name, k),
                                             graph_.tensor(whole).dtype, std::move(shape));
      graph_.inputs.back().part_of = port;
      graph_.inputs.back().first = slices_[k].first;
      graph_.inputs[static_cast<std::size_t>(port)].tensor = ir::kNone;
      parts_of(whole)[k] = part;
      in_parts_.insert(whole);
    }
    if (k + 1 == slices_.size()) inputs_in_parts_.clear();
  }

  void bring_all_in(const std::vector<Op>& readers) {
    if (!reads_inputs_in_parts(readers)) return;
    for (std::size_t k = 0; k < slices_.size(); ++k) bring_in(k);
  }

  /// What exists in slices only is put together for an op that is not cut. Inputs that come whole do so where
  /// they are needed first: after the images, which a caller may have to read before it knows their labels.
  void make_whole(TensorId id) {
    const auto input =
        std::find_if(inputs_.begin(), inputs_.end(), [&](const Op& op) { return op.outputs[0] == id; });
    if (input != inputs_.end()) {
      graph_.add_op(std::move(*input));
      inputs_.erase(input);
    }
    if (!in_parts_.contains(id) || graph_.tensor(id).producer != ir::kNone) return;
    require(graph_.tensor(id).role != ir::Role::workspace, "a kernel's workspace cannot be put together");
    const OpKind kind = OpKind::concat;
    graph_.add_op(
        {kind, phase_of(id), graph_.tensor(id).name + ".whole", parts_.at(id), {id}, ir::AxisAttrs{0}});
  }

  ir::Phase phase_of(TensorId id) const {
    return graph_.tensor(id).role == ir::Role::gradient ? ir::Phase::backward : ir::Phase::forward;
  }

  TensorId add_part(TensorId whole, std::size_t k, bool of_samples) {
    const ir::Tensor& tensor = graph_.tensor(whole);
    ir::Shape shape = tensor.shape;
    if (of_samples) shape[0] = slices_[k].count;
    return graph_.add_tensor(fmt::format("{}.{}", tensor.name, k), tensor.dtype, std::move(shape),
                             tensor.role);
  }

  std::vector<TensorId>& parts_of(TensorId whole) {
    auto [parts, is_new] = parts_.try_emplace(whole);
    if (is_new) parts->second.assign(slices_.size(), ir::kNone);
    return parts->second;
  }

  /// Slice `k` of what has samples; taken out of the whole where no cut op made it.
  TensorId part_of(TensorId whole, std::size_t k) {
    TensorId& part = parts_of(whole)[k];
    if (part != ir::kNone) return part;
    require(graph_.tensor(whole).role != ir::Role::workspace, "a kernel's workspace cannot be cut");
    make_whole(whole);
    part = add_part(whole, k, true);
    const std::size_t rank = graph_.tensor(whole).shape.rank();
    ir::StridedAttrs attrs{std::vector<std::int64_t>(rank, 0), std::vector<std::int64_t>(rank, 1)};
    attrs.begin[0] = slices_[k].first;
    graph_.add_op({OpKind::slice, phase_of(whole), graph_.tensor(part).name, {whole}, {part}, attrs});
    return part;
  }

  void append_slice(const Op& op, std::size_t k) {
    const ir::OpFacts& facts = ir::op_facts(op.kind);
    Op slice{op.kind, op.phase, fmt::format("{}.{}", op.name, k), {}, {}, op.attrs};
    if (op.kind == OpKind::dropout || op.kind == OpKind::dropout_backward) {
      auto attrs = op.attrs_as<ir::DropoutAttrs>();
      attrs.first_sample = slices_[k].first;
      slice.attrs = attrs;
    }
    if (const auto* mean = op.attrs.get_if<ir::MeanAttrs>()) {
      // Of the labels, which are the second input forward and backward.
      const std::int64_t labels = graph_.tensor(op.inputs[1]).shape.elements();
      slice.attrs = ir::MeanAttrs{mean->count > 0 ? mean->count : labels};
    }
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const TensorId id = op.inputs[i];
      if (ir::letter_of(facts.cut_inputs, i) == 's') {
        slice.inputs.push_back(part_of(id, k));
      } else {
        make_whole(id);
        slice.inputs.push_back(id);
      }
    }
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      const bool of_samples = ir::letter_of(facts.cut_outputs, i) == 's';
      const TensorId part = add_part(op.outputs[i], k, of_samples);
      parts_of(op.outputs[i])[k] = part;
      if (of_samples) in_parts_.insert(op.outputs[i]);
      slice.outputs.push_back(part);
    }
    graph_.add_op(std::move(slice));
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      if (ir::letter_of(facts.cut_outputs, i) == '+') append_sum(op, op.outputs[i], k);
    }
  }

  /// Adds slice `k`'s part of a sum to those before.
  void append_sum(const Op& op, TensorId whole, std::size_t k) {
    if (k == order_.front()) {
      sum_[whole] = parts_of(whole)[k];
      return;
    }
    const bool last = k == order_.back();
    const std::string name = fmt::format("{}.sum{}", graph_.tensor(whole).name, k);
    const TensorId total =
        last ? whole
             : graph_.add_tensor(name, ir::DType::f32, ir::Shape(graph_.tensor(whole).shape),
                                 graph_.tensor(whole).role);
    graph_.add_op(
        {OpKind::add, op.phase, name, {sum_.at(whole), parts_of(whole)[k]}, {total}, ir::NoAttrs{}});
    sum_[whole] = total;
    if (last) parts_.erase(whole);
  }

  void append_combination(const Op& op) {
    const ir::Shape& x = graph_.tensor(op.inputs[0]).shape;
    Op combine{OpKind::combine_statistics, op.phase, op.name, {}, op.outputs, {}};
    ir::CombineAttrs attrs;
    for (std::size_t k = 0; k < slices_.size(); ++k) {
      for (const TensorId whole : op.outputs) combine.inputs.push_back(parts_of(whole)[k]);
      attrs.counts.push_back(slices_[k].count * x.elements(2, x.rank()));
    }
    combine.attrs = attrs;
    graph_.add_op(std::move(combine));
    for (const TensorId whole : op.outputs) parts_.erase(whole);
  }

  CutInputs cut_inputs_;
  ir::Graph graph_;
  std::int64_t batch_;
  std::vector<Samples> slices_;
  /// In which the slices of a group run: each group begins with what the one before made last.
  std::vector<std::size_t> order_;
  std::vector<Op> inputs_, inputs_in_parts_;  ///< ops of inputs that nothing has needed so far
  std::vector<Op> group_;                     ///< cut ops that run slice by slice
  std::vector<Op> behind_;                    ///< other ops, for when the group is through
  std::unordered_set<TensorId> of_group_;     ///< what the group makes in slices
  std::unordered_set<TensorId> later_;        ///< what is there only when the group is through
  std::unordered_map<TensorId, std::vector<TensorId>> parts_;  ///< slices by whole tensor
  std::unordered_set<TensorId> in_parts_;                      ///< what cut ops made
  std::unordered_map<TensorId, TensorId> sum_;                 ///< of the slices so far
};

}  // namespace

std::int64_t batch_of(const ir::Graph& graph) {
  for (const ir::Port& port : graph.inputs) {
    if (port.tensor == ir::kNone) continue;
    const ir::Shape& shape = graph.tensor(port.tensor).shape;
    return shape.rank() > 2 ? shape[0] : 0;
  }
  return 0;
}

std::int64_t default_slice(const ir::Graph& network) {
  const std::int64_t batch = batch_of(network);
  std::int64_t widest = 0;
  for (const Op& op : network.ops) {
    if (!is_cut(network, op, batch)) continue;
    std::int64_t bytes = 0;
    for_each_operand(op, [&](char letter, TensorId id) {
      if (letter == 's') bytes += network.tensor(id).size_bytes();
    });
    widest = std::max(widest, bytes);
  }
  if (widest <= kSliceBytes) return 0;
  std::int64_t samples = 1;
  while (2 * samples * widest <= kSliceBytes * batch) samples *= 2;
  return samples;
}

ir::Graph cut_batch(ir::Graph graph, std::int64_t slice_samples, CutInputs inputs) {
  const std::int64_t batch = batch_of(graph);
  if (slice_samples <= 0 || batch <= slice_samples) return graph;
  for (ir::Tensor& tensor : graph.tensors) tensor.producer = ir::kNone;
  return BatchCutter(std::move(graph), batch, slice_samples, inputs).run();
}

}  // namespace penstock::lower
