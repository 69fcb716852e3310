#include "lower/cutter.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "lower/passes.h"

namespace penstock::lower {

using ir::Op;
using ir::OpKind;
using ir::TensorId;

Range part_range(std::int64_t extent, std::size_t k, std::size_t parts) {
  const auto count = static_cast<std::int64_t>(parts);
  const std::int64_t first = extent * static_cast<std::int64_t>(k) / count;
  return {first, extent * static_cast<std::int64_t>(k + 1) / count - first};
}

namespace {

/// All parts' names share their words.
ir::Name name_of(const ir::Name& whole, std::string_view what, std::size_t k) {
  return {whole + what, static_cast<std::int32_t>(k)};
}

}  // namespace

Shaped::Shaped(const ir::Graph& graph, const Op& op) : attrs(op.attrs) {
  for (const TensorId id : op.inputs) in.push_back(graph.tensor(id).shape);
  for (const TensorId id : op.outputs) out.push_back(graph.tensor(id).shape);
}

std::int64_t cut_bytes(const ir::Graph& graph, const Op& op) {
  std::int64_t bytes = 0;
  for_each_operand(op, [&](char letter, TensorId id) {
    if (letter == 's') bytes += graph.tensor(id).size_bytes();
  });
  return bytes;
}

bool has_halves(OpKind kind) {
  return kind == OpKind::batch_norm_backward || kind == OpKind::batch_norm_silu_backward;
}

Halves halves_of(const ir::Graph& graph, const Op& op) {
  auto attrs = op.attrs_as<ir::NormAttrs>();
  const auto& in = op.inputs;
  const bool silu = op.kind == OpKind::batch_norm_silu_backward;
  const TensorId dgamma = op.outputs[1], dbeta = op.outputs[2];
  Op sums{silu ? OpKind::batch_norm_silu_backward_sums : OpKind::batch_norm_backward_sums,
          op.phase,
          op.name + ".sums",
          silu ? in : ir::IdList{in[0], in[1], in[3], in[4]},
          {dgamma, dbeta},
          attrs};
  if (attrs.mask) sums.inputs.push_back(in[5]);
  const ir::Shape& x = graph.tensor(in[0]).shape;
  attrs.count = x[0] * x.elements(2, x.rank());
  // The residual's gradient is dy with the mask applied: made with the sums, in the place of dy, it is the
  // one tensor that waits until they are known, and the mask has been read for the last time.
  TensorId dy = in[1];
  if (attrs.add) {
    dy = op.outputs[3];
    sums.outputs.push_back(dy);
    attrs.add = attrs.relu = attrs.mask = false;
  }
  Op data{silu ? OpKind::batch_norm_silu_backward_data : OpKind::batch_norm_backward_data,
          op.phase,
          op.name,
          {in.begin(), in.begin() + (silu ? 6 : 5)},
          {op.outputs[0]},
          attrs};
  data.inputs[1] = dy;
  for (const TensorId sum : {dgamma, dbeta}) data.inputs.push_back(sum);
  if (attrs.mask) data.inputs.push_back(in[5]);
  return {std::move(sums), std::move(data)};
}

Cutter::Cutter(ir::Graph graph, const CutWay& way, std::size_t parts, std::vector<std::size_t> parts_by_op)
    : graph_(std::move(graph)), way_(way), all_parts_(parts), parts_by_op_(std::move(parts_by_op)) {
  if (parts_by_op_.empty()) parts_by_op_.assign(graph_.ops.size(), parts);
  for (ir::Tensor& tensor : graph_.tensors) tensor.producer = ir::kNone;
}

ir::Graph Cutter::run() {
  LongVector<Op> ops;
  std::swap(ops, graph_.ops);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    Op& op = ops[i];
    const std::size_t parts = parts_by_op_[i];
    if (op.kind == OpKind::input) {
      if (way_.comes_in_parts(graph_.tensor(op.outputs[0]).shape)) {
        inputs_in_parts_.push_back(std::move(op));
      } else if (way_.inputs_wait()) {
        inputs_.push_back(std::move(op));
      } else {
        graph_.add_op(std::move(op));
      }
      continue;
    }
    if (has_halves(op.kind)) {
      auto [sums, data] = halves_of(graph_, op);
      if (parts > 1 && way_.cuts(graph_, sums) && way_.cuts(graph_, data)) {
        take(std::move(sums), parts);
        take(std::move(data), parts);
        continue;
      }
    }
    take(std::move(op), parts);
  }
  finish_group();
  if (!inputs_in_parts_.empty()) {
    for (std::size_t k = 0; k < all_parts_; ++k) bring_in(k);
  }
  for (Op& op : inputs_) graph_.add_op(std::move(op));
  return compact(std::move(graph_));
}

void Cutter::take(Op op, std::size_t parts) {
  if (parts == 1 || !way_.cuts(graph_, op)) {
    if (group_.empty()) return append_whole(std::move(op));
    later_.insert(op.outputs.begin(), op.outputs.end());
    behind_.push_back(std::move(op));
    return;
  }
  if (parts != group_parts_ || needs_whole_group(op)) finish_group();
  group_parts_ = parts;
  const ir::OpFacts& facts = ir::op_facts(op.kind);
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    (ir::letter_of(facts.cut_outputs, i) == 's' ? of_group_ : later_).insert(op.outputs[i]);
  }
  group_.push_back(std::move(op));
}

/// Whether the op reads what is there only when the group is through.
bool Cutter::needs_whole_group(const Op& op) const {
  const ir::OpFacts& facts = ir::op_facts(op.kind);
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    if (later_.contains(op.inputs[i])) return true;
    if (!of_group_.contains(op.inputs[i])) continue;
    if (ir::letter_of(facts.cut_inputs, i) == 'w') return true;
    const Border border = way_.border_of(graph_, op, i);
    if (border.before > 0 || border.behind > 0) return true;
  }
  return false;
}

void Cutter::finish_group() {
  std::vector<Op> group, behind;
  std::swap(group, group_);
  std::swap(behind, behind_);
  of_group_.clear();
  later_.clear();
  if (!group.empty()) {
    order_.resize(group_parts_);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    backwards_ = !backwards_;
    if (backwards_) {
      std::reverse(order_.begin(), order_.end());
      bring_all_in(group);
    }
    for (const std::size_t k : order_) {
      if (reads_inputs_in_parts(group)) bring_in(k);
      for (const Op& op : group) append_part(op, k);
    }
  }
  for (const Op& op : group) {
    if (op.kind == OpKind::batch_norm_statistics) append_combination(op);
  }
  for (Op& op : behind) append_whole(std::move(op));
}

void Cutter::append_whole(Op op) {
  bring_all_in({op});
  for (const TensorId id : op.inputs) make_whole(id);
  graph_.add_op(std::move(op));
}

bool Cutter::reads_inputs_in_parts(const std::vector<Op>& ops) const {
  const auto is_read = [&](const Op& input) {
    return std::any_of(ops.begin(), ops.end(), [&](const Op& op) {
      return std::find(op.inputs.begin(), op.inputs.end(), input.outputs[0]) != op.inputs.end();
    });
  };
  return std::any_of(inputs_in_parts_.begin(), inputs_in_parts_.end(), is_read);
}

/// The caller gives part after part, each with all that belongs to it, so these come in together, in order,
/// when the first of them is needed.
void Cutter::bring_in(std::size_t k) {
  for (const Op& op : inputs_in_parts_) {
    const TensorId whole = op.outputs[0];
    const auto port = op.attrs_as<ir::PortAttrs>().port;
    const ir::Shape& shape = graph_.tensor(whole).shape;
    const std::int64_t first = part_range(shape[way_.axis_of(shape)], k, all_parts_).first;
    const TensorId part = graph_.add_input(fmt::format("{}.{}", graph_.tensor(whole).name, k),
                                           graph_.tensor(whole).dtype, part_shape(whole, k, all_parts_));
    graph_.inputs.back().part_of = port;
    graph_.inputs.back().first = first;
    graph_.inputs[static_cast<std::size_t>(port)].tensor = ir::kNone;
    parts_of(whole, all_parts_)[k] = part;
    in_parts_[whole] = all_parts_;
  }
  if (k + 1 == all_parts_) inputs_in_parts_.clear();
}

void Cutter::bring_all_in(const std::vector<Op>& readers) {
  if (!reads_inputs_in_parts(readers)) return;
  for (std::size_t k = 0; k < all_parts_; ++k) bring_in(k);
}

/// What exists in parts only is put together for an op that is not cut. Inputs that come whole do so where
/// they are needed first: after the images, which a caller may have to read before it knows their labels.
void Cutter::make_whole(TensorId id) {
  const auto input =
      std::find_if(inputs_.begin(), inputs_.end(), [&](const Op& op) { return op.outputs[0] == id; });
  if (input != inputs_.end()) {
    graph_.add_op(std::move(*input));
    inputs_.erase(input);
  }
  const auto made = in_parts_.find(id);
  if (made == in_parts_.end() || graph_.tensor(id).producer != ir::kNone) return;
  require(graph_.tensor(id).role != ir::Role::workspace, "a kernel's workspace cannot be put together");
  const auto axis = static_cast<std::int64_t>(way_.axis_of(graph_.tensor(id).shape));
  graph_.add_op({OpKind::concat,
                 phase_of(id),
                 graph_.tensor(id).name + ".whole",
                 parts_of(id, made->second),
                 {id},
                 ir::AxisAttrs{axis}});
}

ir::Phase Cutter::phase_of(TensorId id) const {
  return graph_.tensor(id).role == ir::Role::gradient ? ir::Phase::backward : ir::Phase::forward;
}

ir::Shape Cutter::part_shape(TensorId whole, std::size_t k, std::size_t parts) const {
  ir::Shape shape = graph_.tensor(whole).shape;
  const std::size_t axis = way_.axis_of(shape);
  shape.set(axis, part_range(shape[axis], k, parts).count);
  return shape;
}

/// Of the group's parts.
TensorId Cutter::add_part(TensorId whole, std::size_t k, bool is_cut) {
  const ir::Tensor& tensor = graph_.tensor(whole);
  return graph_.add_tensor(name_of(tensor.name, ".", k), tensor.dtype,
                           is_cut ? part_shape(whole, k, group_parts_) : tensor.shape, tensor.role);
}

std::vector<TensorId>& Cutter::parts_of(TensorId whole, std::size_t parts) {
  auto [found, is_new] = parts_.try_emplace({whole, parts});
  if (is_new) found->second.assign(parts, ir::kNone);
  return found->second;
}

/// Part `k` of the group's of a tensor; taken out of the whole where no cut op made it.
TensorId Cutter::part_of(TensorId whole, std::size_t k) {
  if (const TensorId part = parts_of(whole, group_parts_)[k]; part != ir::kNone) return part;
  require(graph_.tensor(whole).role != ir::Role::workspace, "a kernel's workspace cannot be cut");
  const auto made = in_parts_.find(whole);
  if (made != in_parts_.end() && graph_.tensor(whole).producer == ir::kNone)
    return other_part_of(whole, k, made->second);
  make_whole(whole);
  const std::int64_t first =
      part_range(graph_.tensor(whole).shape[way_.axis_of(graph_.tensor(whole).shape)], k, group_parts_).first;
  return parts_of(whole, group_parts_)[k] =
             taken_from(whole, first, part_shape(whole, k, group_parts_),
                        name_of(graph_.tensor(whole).name, ".", k), phase_of(whole));
}

/// Part `k` of the group's of a tensor that another group `made` in more parts or in fewer.
TensorId Cutter::other_part_of(TensorId whole, std::size_t k, std::size_t made) {
  const ir::Tensor& tensor = graph_.tensor(whole);
  const ir::Name name = name_of(tensor.name, fmt::format(".in{}.", group_parts_), k);
  const std::vector<TensorId>& theirs = parts_of(whole, made);
  const ir::Shape shape = part_shape(whole, k, group_parts_);
  TensorId part = ir::kNone;
  if (made > group_parts_) {
    const std::size_t each = made / group_parts_;
    const auto first = theirs.begin() + static_cast<std::ptrdiff_t>(k * each);
    part = graph_.add_tensor(name, tensor.dtype, shape, tensor.role);
    graph_.add_op({OpKind::concat,
                   phase_,
                   name,
                   {first, first + static_cast<std::ptrdiff_t>(each)},
                   {part},
                   ir::AxisAttrs{static_cast<std::int64_t>(way_.axis_of(shape))}});
  } else {
    const std::size_t each = group_parts_ / made;
    const std::int64_t extent = tensor.shape[way_.axis_of(tensor.shape)];
    const std::int64_t first =
        part_range(extent, k, group_parts_).first - part_range(extent, k / each, made).first;
    part = taken_from(theirs[k / each], first, shape, name, phase_);
  }
  return parts_of(whole, group_parts_)[k] = part;
}

/// What begins at position `first` of the axis that is cut.
TensorId Cutter::taken_from(TensorId from, std::int64_t first, const ir::Shape& shape, const ir::Name& name,
                            ir::Phase phase) {
  ir::StridedAttrs attrs{std::vector<std::int64_t>(shape.rank(), 0),
                         std::vector<std::int64_t>(shape.rank(), 1)};
  attrs.begin[way_.axis_of(shape)] = first;
  const TensorId part = graph_.add_tensor(name, graph_.tensor(from).dtype, shape, graph_.tensor(from).role);
  graph_.add_op({OpKind::slice, phase, name, {from}, {part}, attrs});
  return part;
}

/// These positions of a part.
TensorId Cutter::rows_of(TensorId part, Range rows, const ir::Name& name) {
  ir::Shape shape = graph_.tensor(part).shape;
  const std::size_t axis = way_.axis_of(shape);
  ir::PadAttrs attrs{std::vector<std::int64_t>(shape.rank(), 0), std::vector<std::int64_t>(shape.rank(), 0)};
  attrs.begin[axis] = rows.first;
  attrs.end[axis] = shape[axis] - rows.first - rows.count;
  shape.set(axis, rows.count);
  const TensorId taken = graph_.add_tensor(name, graph_.tensor(part).dtype, shape, graph_.tensor(part).role);
  graph_.add_op({OpKind::crop, phase_of(part), name, {part}, {taken}, attrs});
  return taken;
}

/// Part `k` and what its neighbours have beside it.
TensorId Cutter::with_border(TensorId whole, std::size_t k, Border border) {
  if (k == 0) border.before = 0;
  if (k + 1 == group_parts_) border.behind = 0;
  const TensorId part = part_of(whole, k);
  if (border.before == 0 && border.behind == 0) return part;
  std::vector<TensorId> pieces;
  ir::Shape shape = graph_.tensor(part).shape;
  const std::size_t axis = way_.axis_of(shape);
  const ir::Name name = graph_.tensor(part).name;
  if (border.before > 0) {
    const TensorId above = part_of(whole, k - 1);
    const std::int64_t extent = graph_.tensor(above).shape[axis];
    pieces.push_back(rows_of(above, {extent - border.before, border.before}, name.with(".before")));
  }
  pieces.push_back(part);
  if (border.behind > 0)
    pieces.push_back(rows_of(part_of(whole, k + 1), {0, border.behind}, name.with(".behind")));
  shape.set(axis, shape[axis] + border.before + border.behind);
  const TensorId wide =
      graph_.add_tensor(name.with(".wide"), graph_.tensor(part).dtype, shape, graph_.tensor(part).role);
  graph_.add_op({OpKind::concat,
                 phase_of(part),
                 name.with(".wide"),
                 pieces,
                 {wide},
                 ir::AxisAttrs{static_cast<std::int64_t>(axis)}});
  return wide;
}

/// What the forward half put together or cut again is made anew in the backward half, from what is held there
/// anyway: to hold both would take more memory than to copy takes time.
void Cutter::forget_other_parts() {
  std::erase_if(parts_, [&](const auto& entry) {
    const auto made = in_parts_.find(entry.first.first);
    return made != in_parts_.end() && made->second != entry.first.second;
  });
}

void Cutter::append_part(const Op& op, std::size_t k) {
  if (op.phase == ir::Phase::backward && !in_backward_) forget_other_parts();
  in_backward_ = in_backward_ || op.phase == ir::Phase::backward;
  phase_ = op.phase;
  const ir::OpFacts& facts = ir::op_facts(op.kind);
  Op part{op.kind, op.phase, name_of(op.name, ".", k), {}, {}, way_.attrs_of(graph_, op, k, group_parts_)};
  if (const auto* mean = op.attrs.get_if<ir::MeanAttrs>()) {
    // Of the labels, which are the second input forward and backward.
    const std::int64_t labels = graph_.tensor(op.inputs[1]).shape.elements();
    part.attrs = ir::MeanAttrs{mean->count > 0 ? mean->count : labels};
  }
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const TensorId id = op.inputs[i];
    if (ir::letter_of(facts.cut_inputs, i) == 's') {
      part.inputs.push_back(with_border(id, k, way_.border_of(graph_, op, i)));
    } else {
      make_whole(id);
      part.inputs.push_back(id);
    }
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    const TensorId whole = op.outputs[i];
    const char letter = ir::letter_of(facts.cut_outputs, i);
    if (letter == 'a') {
      if (k != order_.front()) {
        // An op that has been cut before begins with what stands before all its parts.
        if (part.inputs.size() == facts.inputs.max) part.inputs.pop_back();
        part.inputs.push_back(sum_.at(whole));
      }
      sum_[whole] = k == order_.back() ? whole : add_part(whole, k, false);
      part.outputs.push_back(sum_[whole]);
      continue;
    }
    const TensorId made = add_part(whole, k, letter == 's');
    parts_of(whole, group_parts_)[k] = made;
    if (letter == 's') in_parts_[whole] = group_parts_;
    part.outputs.push_back(made);
  }
  graph_.add_op(std::move(part));
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (ir::letter_of(facts.cut_outputs, i) == '+') append_sum(op, op.outputs[i], k);
  }
}

/// Adds part `k`'s share of a sum to those before.
void Cutter::append_sum(const Op& op, TensorId whole, std::size_t k) {
  if (k == order_.front()) {
    sum_[whole] = parts_of(whole, group_parts_)[k];
    return;
  }
  const bool last = k == order_.back();
  const ir::Name name = name_of(graph_.tensor(whole).name, ".sum", k);
  const TensorId total = last ? whole
                              : graph_.add_tensor(name, ir::DType::f32, ir::Shape(graph_.tensor(whole).shape),
                                                  graph_.tensor(whole).role);
  graph_.add_op({OpKind::add,
                 op.phase,
                 name,
                 {sum_.at(whole), parts_of(whole, group_parts_)[k]},
                 {total},
                 ir::NoAttrs{}});
  sum_[whole] = total;
  if (last) parts_.erase({whole, group_parts_});
}

void Cutter::append_combination(const Op& op) {
  Op combine{OpKind::combine_statistics, op.phase, op.name, {}, op.outputs, {}};
  ir::CombineAttrs attrs;
  for (std::size_t k = 0; k < group_parts_; ++k) {
    for (const TensorId whole : op.outputs) combine.inputs.push_back(parts_of(whole, group_parts_)[k]);
    const ir::Shape x = part_shape(op.inputs[0], k, group_parts_);
    attrs.counts.push_back(x[0] * x.elements(2, x.rank()));
  }
  combine.attrs = attrs;
  graph_.add_op(std::move(combine));
  for (const TensorId whole : op.outputs) parts_.erase({whole, group_parts_});
}

}  // namespace penstock::lower
