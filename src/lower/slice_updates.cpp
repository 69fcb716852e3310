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
  OpId gradient = ir::kNone;  ///< the op that makes the gradient, or the dense part of it
  OpId sparse = ir::kNone;    ///< the op that adds to it the rows that occurred; kNone: none
  OpId update = ir::kNone;
};

class Slicer {
 public:
  Slicer(ir::Graph graph, std::int64_t slice_bytes) : graph_(std::move(graph)), slice_bytes_(slice_bytes) {}

  ir::Graph run() {
    const std::vector<Large> found = find();
    if (found.empty()) return std::move(graph_);
    std::map<OpId, const Large*> at_gradient, at_sparse, at_update;
    for (const Large& large : found) {
      at_gradient[large.gradient] = &large;
      if (large.sparse != ir::kNone) at_sparse[large.sparse] = &large;
      at_update[large.update] = &large;
    }
    old_ = std::move(graph_.ops);
    graph_.ops.clear();
    for (std::size_t i = 0; i < old_.size(); ++i) {
      const auto id = static_cast<OpId>(i);
      if (const auto gradient = at_gradient.find(id); gradient != at_gradient.end()) {
        begin_gradient(*gradient->second);
      } else if (const auto update = at_update.find(id); update != at_update.end()) {
        append_slices(*update->second);
      } else if (!at_sparse.contains(id)) {
        graph_.add_op(old_[i]);
      }
    }
    std::erase_if(graph_.carried, [&](const ir::Carried& state) { return sliced_.contains(state.begin); });
    return compact(std::move(graph_));
  }

 private:
  const Op& old(OpId id) const { return old_[static_cast<std::size_t>(id)]; }

  std::vector<Large> find() const {
    const auto readers = ir::consumers(graph_);
    const auto sole_maker = [&](TensorId gradient) {
      return readers[static_cast<std::size_t>(gradient)].size() == 1 ? graph_.tensor(gradient).producer
                                                                     : ir::kNone;
    };
    std::vector<Large> found;
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      const Op& op = graph_.ops[i];
      if (op.kind != OpKind::sgd_update && op.kind != OpKind::adam_update) continue;
      if (graph_.tensor(op.inputs[0]).size_bytes() <= 2 * slice_bytes_) continue;
      Large large;
      large.update = static_cast<OpId>(i);
      large.gradient = sole_maker(op.inputs[1]);
      if (large.gradient == ir::kNone) continue;
      const Op& made = graph_.op(large.gradient);
      if (made.kind == OpKind::embedding_backward && made.inputs.size() > 2) {
        large.sparse = large.gradient;
        large.gradient = sole_maker(made.inputs[2]);
        // Only a gradient in slices can have the rows that occurred added to it slice by slice.
        if (large.gradient == ir::kNone ||
            graph_.op(large.gradient).kind != OpKind::linear_cross_entropy_backward)
          continue;
      }
      if (comes_in_slices(graph_.op(large.gradient).kind)) found.push_back(large);
    }
    return found;
  }

  static bool comes_in_slices(OpKind kind) {
    return kind == OpKind::linear_backward_weights || kind == OpKind::embedding_backward ||
           kind == OpKind::linear_cross_entropy_backward;
  }

  /// Whether the kernel takes columns of dy by itself; if not, dy is split.
  bool takes_part(const Op& whole) const {
    return graph_.tensor(whole.inputs[1]).shape.rank() != 2 || whole.attrs_as<ir::LinearAttrs>().turned;
  }

  /// The rows of each slice of a weight.
  struct Rows {
    std::int64_t begin, count;
  };
  std::vector<Rows> slices_of(const ir::Shape& weight) const {
    const std::int64_t row_bytes = weight[1] * ir::dtype_bytes(ir::DType::f32);
    std::int64_t rows_each = std::max<std::int64_t>(1, slice_bytes_ / row_bytes);
    if (rows_each > kWholeRows) rows_each -= rows_each % kWholeRows;
    std::vector<Rows> slices;
    for (std::int64_t row = 0; row < weight[0]; row += rows_each)
      slices.push_back({row, std::min(rows_each, weight[0] - row)});
    return slices;
  }

  /// What must be made where the whole gradient was, because others read it too.
  void begin_gradient(const Large& large) {
    const Op& whole = old(large.gradient);
    if (whole.kind == OpKind::linear_cross_entropy_backward) {
      begin_output_loss(large);
    } else if (whole.outputs.size() > 1 && takes_part(whole)) {
      first_slice_[large.gradient] =
          append_linear_slice(whole, 0, slices_of(graph_.tensor(whole.outputs[0]).shape)[0]);
    } else if (whole.outputs.size() > 1) {
      graph_.add_op({OpKind::bias_backward,
                     ir::Phase::backward,
                     whole.name + ".bias",
                     {whole.inputs[1]},
                     {whole.outputs[1]},
                     ir::NoAttrs{}});
    }
  }

  /// Parts of the vocabulary in turn: each adds to dx. Without rows that occurred elsewhere the weights of a
  /// part are updated before the next is begun, which reads other rows.
  void begin_output_loss(const Large& large) {
    const Op& whole = old(large.gradient);
    const Op& update = old(large.update);
    const auto slices = slices_of(graph_.tensor(whole.outputs[1]).shape);
    TensorId dx = ir::kNone;
    TensorId weight = update.inputs[0];
    for (std::size_t k = 0; k < slices.size(); ++k) {
      auto attrs = whole.attrs_as<ir::OutputLossAttrs>();
      attrs.begin = slices[k].begin;
      Op op{whole.kind, whole.phase, fmt::format("{}.{}", whole.name, k), whole.inputs, {}, attrs};
      op.inputs[1] = weight;
      if (dx != ir::kNone) op.inputs.push_back(dx);
      const bool last = k + 1 == slices.size();
      const ir::Tensor& dx_whole = graph_.tensor(whole.outputs[0]);
      dx = last ? whole.outputs[0]
                : graph_.add_tensor(fmt::format("{}.{}", dx_whole.name, k), ir::DType::f32,
                                    ir::Shape(dx_whole.shape), ir::Role::gradient);
      const TensorId gradient = add_gradient(whole.outputs[1], k, slices[k]);
      op.outputs = {dx, gradient};
      graph_.add_op(std::move(op));
      if (large.sparse == ir::kNone) {
        weight = append_update(update, k, weight, gradient, slices[k].begin);
      } else {
        dense_[large.gradient].push_back(gradient);
      }
    }
    if (large.sparse == ir::kNone) graph_.replace_carried(update.inputs[0], weight);
  }

  TensorId add_gradient(TensorId whole, std::size_t k, Rows rows) {
    const ir::Tensor& tensor = graph_.tensor(whole);
    const ir::Shape shape{rows.count, tensor.shape[1]};
    return graph_.add_tensor(fmt::format("{}.{}", tensor.name, k), ir::DType::f32, shape, ir::Role::gradient);
  }

  /// Rows of a linear layer's gradient, taken from the whole dy; the first slice makes the bias gradient too.
  TensorId append_linear_slice(const Op& whole, std::size_t k, Rows rows) {
    auto attrs = whole.attrs_as<ir::LinearAttrs>();
    attrs.begin = rows.begin;
    const TensorId gradient = add_gradient(whole.outputs[0], k, rows);
    std::vector<TensorId> outputs{gradient};
    if (k == 0 && whole.outputs.size() > 1) outputs.push_back(whole.outputs[1]);
    graph_.add_op(
        {whole.kind, whole.phase, fmt::format("{}.{}", whole.name, k), whole.inputs, outputs, attrs});
    return gradient;
  }

  TensorId append_embedding_slice(const Op& whole, std::size_t k, Rows rows, TensorId dense) {
    std::vector<TensorId> inputs{whole.inputs[0], whole.inputs[1]};
    if (dense != ir::kNone) inputs.push_back(dense);
    const TensorId gradient = add_gradient(whole.outputs[0], k, rows);
    graph_.add_op({whole.kind,
                   whole.phase,
                   fmt::format("{}.{}", whole.name, k),
                   inputs,
                   {gradient},
                   ir::EmbeddingAttrs{rows.begin}});
    return gradient;
  }

  void append_slices(const Large& large) {
    const Op& whole = old(large.gradient);
    const Op& update = old(large.update);
    if (whole.kind == OpKind::linear_cross_entropy_backward && large.sparse == ir::kNone)
      return;  // already done
    const auto slices = slices_of(graph_.tensor(update.inputs[0]).shape);
    const bool split = whole.kind == OpKind::linear_backward_weights && !takes_part(whole);
    const std::vector<TensorId> parts = split ? append_split(whole, slices) : std::vector<TensorId>{};
    TensorId weight = update.inputs[0];
    for (std::size_t k = 0; k < slices.size(); ++k) {
      TensorId gradient = ir::kNone;
      if (split) {
        gradient = add_gradient(whole.outputs[0], k, slices[k]);
        graph_.add_op({whole.kind,
                       whole.phase,
                       fmt::format("{}.{}", whole.name, k),
                       {whole.inputs[0], parts[k]},
                       {gradient},
                       whole.attrs});
      } else if (whole.kind == OpKind::linear_backward_weights) {
        const auto made = first_slice_.find(large.gradient);
        gradient =
            k == 0 && made != first_slice_.end() ? made->second : append_linear_slice(whole, k, slices[k]);
      } else if (large.sparse != ir::kNone) {
        gradient = append_embedding_slice(old(large.sparse), k, slices[k], dense_.at(large.gradient)[k]);
      } else {
        gradient = append_embedding_slice(whole, k, slices[k], ir::kNone);
      }
      weight = append_update(update, k, weight, gradient, slices[k].begin);
    }
    graph_.replace_carried(update.inputs[0], weight);
  }

  /// Columns of dy [N, M] for each slice.
  std::vector<TensorId> append_split(const Op& whole, const std::vector<Rows>& slices) {
    std::vector<TensorId> parts;
    const ir::Tensor dy = graph_.tensor(whole.inputs[1]);
    for (const Rows& rows : slices) {
      parts.push_back(graph_.add_tensor(fmt::format("{}.{}", dy.name, parts.size()), ir::DType::f32,
                                        {dy.shape[0], rows.count}, ir::Role::gradient));
    }
    graph_.add_op({OpKind::split,
                   ir::Phase::backward,
                   whole.name + ".split",
                   {whole.inputs[1]},
                   parts,
                   ir::AxisAttrs{1}});
    return parts;
  }

  /// `row`: of the weight, where the slice begins.
  TensorId append_update(const Op& whole, std::size_t k, TensorId weight, TensorId gradient,
                         std::int64_t row) {
    Op op{whole.kind, whole.phase, fmt::format("{}.{}", whole.name, k), {weight, gradient}, {}, whole.attrs};
    ir::set_update_begin(op, row * graph_.tensor(gradient).shape[1]);
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
  LongVector<Op> old_;
  std::set<TensorId> sliced_;                    ///< optimizer state that slices replace
  std::map<OpId, TensorId> first_slice_;         ///< of linear layers with a bias
  std::map<OpId, std::vector<TensorId>> dense_;  ///< slices of tied output layers' gradients
};

}  // namespace

ir::Graph slice_updates(ir::Graph graph, std::int64_t slice_bytes) {
  return Slicer(std::move(graph), slice_bytes).run();
}

}  // namespace penstock::lower
