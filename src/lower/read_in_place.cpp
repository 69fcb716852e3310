#include <algorithm>
#include <optional>

#include "ir/attention_sizes.h"
#include "lower/passes.h"
#include "lower/tensor_view.h"

namespace penstock::lower {
namespace {

using ir::AttentionLayout;
using ir::kNone;
using ir::Op;
using ir::OpId;
using ir::OpKind;
using ir::TensorId;

std::size_t place(std::int32_t id) {
  return static_cast<std::size_t>(id);
}

/// An op that runs on what its inputs were made of. What it makes lies in the order of its base.
struct InPlace {
  std::vector<TensorId> inputs;  ///< bases, and the rest as they are
  std::vector<ir::Shape> shapes;
  ir::Attrs attrs;
  ir::Shape made;  ///< of its first output
};

/// Follows reshapes, transposes and slices as views of what they are made of, and finds linear layers and
/// attentions that may as well read, and be read, there.
class PlaceReader {
 public:
  explicit PlaceReader(ir::Graph forward)
      : graph_(std::move(forward)), tensors_(graph_.tensors.size()), as_it_is_(graph_.ops.size(), false) {}

  ir::Graph run() {
    // An op whose result is wanted in the old order by anybody stays as it is; that may leave others with
    // nobody to follow.
    while (look()) {
    }
    if (std::none_of(in_place_.begin(), in_place_.end(), [](const auto& op) { return op.has_value(); }) &&
        !undone_)
      return std::move(graph_);
    write();
    return prune(std::move(graph_));
  }

 private:
  const ir::Shape& shape(TensorId id) const { return graph_.tensor(id).shape; }
  /// Of what a base is now: ops in place make another shape.
  ir::Shape made_shape(TensorId base) const {
    const OpId producer = graph_.tensor(base).producer;
    return producer != kNone && in_place_[place(producer)] ? in_place_[place(producer)]->made : shape(base);
  }
  std::int64_t base_elements(const TensorView& view) const { return made_shape(view.base()).elements(); }
  TensorView view_of(TensorId id) const {
    const auto& view = views_[place(id)];
    return view ? *view : TensorView::whole(id, shape(id).elements());
  }
  /// Views of everything, with ops in place wherever that may be. True if one of them has to stay as it is.
  bool look() {
    views_.assign(tensors_, std::nullopt);
    in_place_.assign(graph_.ops.size(), std::nullopt);
    undone_ = false;
    bool changed = false;
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      const Op& op = graph_.ops[i];
      if (follow(op)) continue;
      if (!as_it_is_[i] && (op.kind == OpKind::linear ? linear_in_place(op, i) : attention_in_place(op, i)))
        continue;
      for (const TensorId input : op.inputs) changed |= !wants(input);
    }
    if (graph_.loss != kNone) changed |= !wants(graph_.loss);
    return changed;
  }

  /// Whether the op only looks at memory in another way.
  bool follow(const Op& op) {
    if (op.kind == OpKind::reshape) {
      views_[place(op.outputs[0])] = view_of(op.inputs[0]);
      return true;
    }
    if (op.kind == OpKind::transpose) {
      const auto view =
          view_of(op.inputs[0]).transposed(shape(op.inputs[0]), op.attrs_as<ir::TransposeAttrs>().order);
      views_[place(op.outputs[0])] = view;
      undone_ |= view && view->is_whole(base_elements(*view));
      return view.has_value();
    }
    if (op.kind == OpKind::split) {
      const auto axis = static_cast<std::size_t>(op.attrs_as<ir::AxisAttrs>().axis);
      std::int64_t begin = 0;
      for (const TensorId part : op.outputs) {
        const std::int64_t count = shape(part)[axis];
        views_[place(part)] = view_of(op.inputs[0]).sliced(shape(op.inputs[0]), axis, begin, count);
        begin += count;
      }
      return std::all_of(op.outputs.begin(), op.outputs.end(),
                         [&](TensorId part) { return views_[place(part)].has_value(); });
    }
    return false;
  }

  /// Rows in another order: the layer runs on them as they lie.
  bool linear_in_place(const Op& op, std::size_t i) {
    const TensorId x = op.inputs[0];
    const TensorView view = view_of(x);
    const ir::Shape base = made_shape(view.base());
    const std::int64_t width = shape(x)[shape(x).rank() - 1];
    const std::int64_t new_width = shape(op.outputs[0])[shape(op.outputs[0]).rank() - 1];
    if (view.is_whole(base_elements(view)) || base.rank() == 0 || base[base.rank() - 1] != width ||
        view.elements() != base.elements())
      return false;
    const auto made = view.with_rows(width, op.outputs[0], new_width);
    if (!made) return false;
    InPlace run{{view.base()}, {base}, op.attrs, base};
    run.made.set(base.rank() - 1, new_width);
    for (std::size_t k = 1; k < op.inputs.size(); ++k) {
      run.inputs.push_back(op.inputs[k]);
      run.shapes.push_back(shape(op.inputs[k]));
    }
    views_[place(op.outputs[0])] = made;
    in_place_[i] = std::move(run);
    return true;
  }

  /// Queries, keys and values as linear layers made them.
  bool attention_in_place(const Op& op, std::size_t i) {
    if (op.kind != OpKind::attention) return false;
    auto attrs = op.attrs_as<ir::AttentionAttrs>();
    if (attrs.layout != AttentionLayout::heads) return false;
    const auto sizes =
        ir::attention_sizes(attrs, {shape(op.inputs[0]), shape(op.inputs[1]), shape(op.inputs[2])});
    // Heads of rows that hold `row` elements each.
    const auto heads_of = [&](TensorId base, std::int64_t heads, std::int64_t length, std::int64_t row,
                              std::int64_t offset) {
      return TensorView(
          base, {{sizes.batch, length * row}, {heads, sizes.width}, {length, row}, {sizes.width, 1}}, offset);
    };
    const auto lies_as = [&](std::size_t k, std::int64_t heads, std::int64_t length, std::int64_t row,
                             std::int64_t offset) {
      const TensorView view = view_of(op.inputs[k]);
      return base_elements(view) == sizes.batch * length * row &&
             view == heads_of(view.base(), heads, length, row, offset);
    };
    const std::int64_t q_row = sizes.heads * sizes.width;
    const std::int64_t kv_row = sizes.kv_heads * sizes.width;
    const std::int64_t row = q_row + 2 * kv_row;
    const TensorId base = view_of(op.inputs[0]).base();
    InPlace run;
    if (op.inputs.size() == 3 && view_of(op.inputs[1]).base() == base &&
        view_of(op.inputs[2]).base() == base && lies_as(0, sizes.heads, sizes.queries, row, 0) &&
        lies_as(1, sizes.kv_heads, sizes.queries, row, q_row) &&
        lies_as(2, sizes.kv_heads, sizes.queries, row, q_row + kv_row)) {
      attrs.layout = AttentionLayout::packed;
      run.inputs = {base};
      run.shapes = {{sizes.batch, sizes.queries, row}};
    } else if (lies_as(0, sizes.heads, sizes.queries, q_row, 0) &&
               lies_as(1, sizes.kv_heads, sizes.keys, kv_row, 0) &&
               lies_as(2, sizes.kv_heads, sizes.keys, kv_row, 0)) {
      attrs.layout = AttentionLayout::rows;
      run.inputs = {base, view_of(op.inputs[1]).base(), view_of(op.inputs[2]).base()};
      run.shapes = {{sizes.batch, sizes.queries, q_row},
                    {sizes.batch, sizes.keys, kv_row},
                    {sizes.batch, sizes.keys, kv_row}};
      if (op.inputs.size() > 3) {
        run.inputs.push_back(op.inputs[3]);
        run.shapes.push_back(shape(op.inputs[3]));
      }
    } else {
      return false;
    }
    run.attrs = attrs;
    run.made = {sizes.batch, sizes.queries, q_row};
    views_[place(op.outputs[0])] = heads_of(op.outputs[0], sizes.heads, sizes.queries, q_row, 0);
    in_place_[i] = std::move(run);
    return true;
  }

  /// An op reads this tensor as such. False where that undoes an op in place.
  bool wants(TensorId id) {
    const TensorView view = view_of(id);
    if (view.is_whole(base_elements(view))) return true;
    const OpId producer = graph_.tensor(view.base()).producer;
    if (producer == kNone || !in_place_[place(producer)]) return true;
    as_it_is_[place(producer)] = true;
    return false;
  }

  /// The tensor with what `base` holds, in this shape.
  TensorId shaped(TensorId base, const ir::Shape& wanted, LongVector<Op>& ops) {
    if (made_shape(base) == wanted) return now_[place(base)];
    const ir::Tensor& tensor = graph_.tensor(now_[place(base)]);
    const TensorId made = graph_.add_tensor(tensor.name.with(".as"), tensor.dtype, wanted, tensor.role);
    ops.push_back({OpKind::reshape,
                   ir::Phase::forward,
                   graph_.tensor(made).name,
                   {now_[place(base)]},
                   {made},
                   ir::NoAttrs{}});
    return made;
  }

  void write() {
    now_.resize(tensors_);
    for (std::size_t id = 0; id < tensors_; ++id) now_[id] = static_cast<TensorId>(id);
    LongVector<Op> ops;
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      Op op = graph_.ops[i];
      if (in_place_[i]) {
        const TensorId old = op.outputs[0];
        const InPlace& run = *in_place_[i];
        ir::IdList inputs;
        for (std::size_t k = 0; k < run.inputs.size(); ++k)
          inputs.push_back(shaped(run.inputs[k], run.shapes[k], ops));
        const ir::Tensor& tensor = graph_.tensor(old);
        now_[place(old)] = graph_.add_tensor(tensor.name.with(".rows"), tensor.dtype, run.made, tensor.role);
        op.inputs = inputs;
        op.outputs[0] = now_[place(old)];
        op.attrs = run.attrs;
        ops.push_back(std::move(op));
        continue;
      }
      if (op.kind != OpKind::reshape && op.kind != OpKind::transpose && op.kind != OpKind::split) {
        ops.push_back(std::move(op));
        continue;
      }
      // A look at memory that an op in place has left in another order is wanted by nobody, unless it is all
      // of it.
      const TensorView view = view_of(op.outputs[0]);
      if (op.outputs.size() == 1 && views_[place(op.outputs[0])] && view.is_whole(base_elements(view))) {
        op.kind = OpKind::reshape;
        op.attrs = ir::NoAttrs{};
        op.inputs = {now_[place(view.base())]};
        ops.push_back(std::move(op));
      } else if (now_[place(view.base())] == view.base()) {
        ops.push_back(std::move(op));
      }
    }
    graph_.ops = std::move(ops);
  }

  ir::Graph graph_;
  std::size_t tensors_;                           ///< before any is added
  std::vector<std::optional<TensorView>> views_;  ///< by tensor; none: it is its own base
  std::vector<std::optional<InPlace>> in_place_;  ///< by op
  std::vector<bool> as_it_is_;                    ///< by op
  bool undone_ = false;                           ///< a transpose only turns back what another turned
  std::vector<TensorId> now_;                     ///< by base: what holds it
};

}  // namespace

ir::Graph read_in_place(ir::Graph forward) {
  return PlaceReader(std::move(forward)).run();
}

}  // namespace penstock::lower
