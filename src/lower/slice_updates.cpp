#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "lower/lower.h"
#include "lower/passes.h"

namespace penstock::lower {
namespace {

using ir::Op;
using ir::OpId;
using ir::OpKind;
using ir::TensorId;

/// Products are fastest in multiples of so many rows.
constexpr std::int64_t kWholeRows = 16;

/// A large weight's gradient and update, to be done in slices of rows.
struct Large {
  OpId gradient = ir::kNone;  ///< the op that makes the whole gradient
  OpId update = ir::kNone;
};

class Slicer {
 public:
  Slicer(ir::Graph graph, std::int64_t slice_bytes) : graph_(std::move(graph)), slice_bytes_(slice_bytes) {}

  ir::Graph run() {
    const std::vector<Large> found = find();
    if (found.empty()) return std::move(graph_);
    std::map<OpId, Large> at_gradient, at_update;
    for (const Large& large : found) {
      at_gradient[large.gradient] = large;
      at_update[large.update] = large;
    }
    old_ = std::move(graph_.ops);
    graph_.ops.clear();
    for (std::size_t i = 0; i < old_.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      if (at_gradient.contains(id)) {
        append_bias_gradient(old_[i]);
      } else if (const auto large = at_update.find(id); large != at_update.end()) {
        append_slices(old_[static_cast<std::size_t>(large->second.gradient)], old_[i]);
      } else {
        graph_.add_op(old_[i]);
      }
    }
    std::erase_if(graph_.carried, [&](const ir::Carried& state) { return sliced_.contains(state.begin); });
    return compact(std::move(graph_));
  }

 private:
  std::vector<Large> find() const {
    const auto readers = ir::consumers(graph_);
    std::vector<Large> found;
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      const Op& op = graph_.ops[i];
      if (op.kind != OpKind::sgd_update && op.kind != OpKind::adam_update) continue;
      if (graph_.tensor(op.inputs[0]).size_bytes() <= 2 * slice_bytes_) continue;
      const TensorId gradient = op.inputs[1];
      const OpId maker = graph_.tensor(gradient).producer;
      if (maker == ir::kNone || readers[static_cast<std::size_t>(gradient)].size() != 1) continue;
      const Op& made = graph_.op(maker);
      if (made.kind != OpKind::linear_backward_weights || graph_.tensor(made.inputs[1]).shape.rank() != 2)
        continue;
      found.push_back({maker, static_cast<OpId>(i)});
    }
    return found;
  }

  void append_bias_gradient(const Op& whole) {
    if (whole.outputs.size() < 2) return;
    graph_.add_op({OpKind::bias_backward,
                   ir::Phase::backward,
                   whole.name + ".bias",
                   {whole.inputs[1]},
                   {whole.outputs[1]},
                   ir::NoAttrs{}});
  }

  void append_slices(const Op& whole, const Op& update) {
    const ir::Shape& shape = graph_.tensor(update.inputs[0]).shape;
    const std::int64_t rows = shape[0], columns = shape[1], batch = graph_.tensor(whole.inputs[1]).shape[0];
    const std::int64_t row_bytes = columns * ir::dtype_bytes(ir::DType::f32);
    std::int64_t rows_each = std::max<std::int64_t>(1, slice_bytes_ / row_bytes);
    if (rows_each > kWholeRows) rows_each -= rows_each % kWholeRows;
    std::vector<TensorId> parts;
    for (std::int64_t row = 0; row < rows; row += rows_each) {
      parts.push_back(
          graph_.add_tensor(fmt::format("{}.{}", graph_.tensor(whole.inputs[1]).name, parts.size()),
                            ir::DType::f32, {batch, std::min(rows_each, rows - row)}, ir::Role::gradient));
    }
    graph_.add_op({OpKind::split,
                   ir::Phase::backward,
                   whole.name + ".split",
                   {whole.inputs[1]},
                   parts,
                   ir::AxisAttrs{1}});
    TensorId weight = update.inputs[0];
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const ir::Shape part{graph_.tensor(parts[k]).shape[1], columns};
      const TensorId gradient =
          graph_.add_tensor(fmt::format("{}.{}", graph_.tensor(whole.outputs[0]).name, k), ir::DType::f32,
                            part, ir::Role::gradient);
      graph_.add_op({OpKind::linear_backward_weights,
                     ir::Phase::backward,
                     fmt::format("{}.{}", whole.name, k),
                     {whole.inputs[0], parts[k]},
                     {gradient},
                     whole.attrs});
      weight = append_update(update, k, weight, gradient, static_cast<std::int64_t>(k) * rows_each * columns);
    }
    graph_.replace_carried(update.inputs[0], weight);
  }

  TensorId append_update(const Op& whole, std::size_t k, TensorId weight, TensorId gradient,
                         std::int64_t begin) {
    Op op{whole.kind, whole.phase, fmt::format("{}.{}", whole.name, k), {weight, gradient}, {}, whole.attrs};
    ir::set_update_begin(op, begin);
    const TensorId next =
        graph_.add_successor(weight, fmt::format("{}'{}", graph_.tensor(whole.inputs[0]).name, k));
    op.outputs.push_back(next);
    for (std::size_t i = 2; i < whole.inputs.size(); ++i) {
      const ir::Tensor& state = graph_.tensor(whole.inputs[i]);
      sliced_.insert(whole.inputs[i]);
      const TensorId part = graph_.add_state(fmt::format("{}.{}", state.name, k),
                                             graph_.tensor(gradient).shape, state.role, state.init);
      const TensorId part_next = graph_.add_successor(part, graph_.tensor(part).name + "'");
      graph_.replace_carried(part, part_next);
      op.inputs.push_back(part);
      op.outputs.push_back(part_next);
    }
    graph_.add_op(std::move(op));
    return next;
  }

  ir::Graph graph_;
  std::int64_t slice_bytes_;
  std::vector<Op> old_;
  std::set<TensorId> sliced_;  ///< optimizer state that slices replace
};

}  // namespace

ir::Graph slice_updates(ir::Graph graph, std::int64_t slice_bytes) {
  return Slicer(std::move(graph), slice_bytes).run();
}

}  // namespace penstock::lower
