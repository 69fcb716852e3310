#include <algorithm>

#include "lower/cutter.h"

namespace penstock::lower {
namespace {

using ir::Op;
using ir::OpKind;
using ir::TensorId;

/// Bands of rows: the first axis of an image or a volume. It is the third of a tensor with channels and the
/// second of labels, which have none.
class RowWay : public CutWay {
 public:
  /// `image_rank`: how many axes images have, batch and channels among them.
  RowWay(std::size_t image_rank, std::int64_t bands) : image_rank_(image_rank), bands_(bands) {}

  std::size_t axis_of(const ir::Shape& shape) const override { return shape.rank() == image_rank_ ? 2 : 1; }

  bool cuts(const ir::Graph& graph, const Op& op) const override {
    const ir::OpFacts& facts = ir::op_facts(op.kind);
    if (!facts.by_rows || (facts.can_cut != nullptr && !facts.can_cut(Shaped(graph, op).shapes())))
      return false;
    std::int64_t least = 0, most = 0;
    bool fits = true;
    for_each_operand(op, [&](char letter, TensorId id) {
      if (letter != 's') return;
      const std::int64_t rows = rows_of(graph.tensor(id).shape);
      fits = fits && rows > 0 && rows % bands_ == 0;
      least = least == 0 ? rows : std::min(least, rows);
      most = std::max(most, rows);
    });
    if (!fits) return false;
    if (op.attrs.get_if<ir::ConvAttrs>() != nullptr) {
      const Window window(graph, op);
      if (window.stride > 1) return window.beside_each_other() && most == least * window.stride;
      return !is_transposed(op.kind) && most == least &&
             std::max(window.padding_begin, window.padding_end) <= least / bands_;
    }
    if (const auto* pool = op.attrs.get_if<ir::PoolAttrs>()) {
      const std::int64_t padding = pool->padding_begin[0] + pool->padding_end[0];
      return pool->kernel[0] == pool->stride[0] && padding == 0 && most == least * pool->stride[0];
    }
    if (const auto* along = op.attrs.get_if<ir::AxisAttrs>()) return along->axis < 2 && most == least;
    return most == least;
  }

  bool comes_in_parts(const ir::Shape& /*input*/) const override { return false; }
  bool inputs_wait() const override { return false; }

  /// A convolution's window reaches over the edge of a band by what it is padded with at the edge of the
  /// image. Its gradient looks the other way: a row of x gets what the windows that reach it have made.
  Border border_of(const ir::Graph& graph, const Op& op, std::size_t input) const override {
    if (op.attrs.get_if<ir::ConvAttrs>() == nullptr || input != 0) return {};
    const Window window(graph, op);
    if (window.stride > 1) return {};
    if (op.kind == OpKind::conv_backward_data) return {window.padding_end, window.padding_begin};
    return {window.padding_begin, window.padding_end};
  }

  ir::Attrs attrs_of(const ir::Graph& graph, const Op& op, std::size_t k, std::size_t parts) const override {
    if (op.attrs.get_if<ir::ConvAttrs>() == nullptr) return op.attrs;
    auto attrs = op.attrs_as<ir::ConvAttrs>();
    const Window window(graph, op);
    if (window.stride > 1) return attrs;
    // Rows of the neighbours take the place of padding; a gradient's windows begin and end beyond them.
    const std::int64_t inside =
        op.kind == OpKind::conv_backward_data ? window.padding_begin + window.padding_end : 0;
    if (k > 0) attrs.padding_begin[0] = inside;
    if (k + 1 < parts) attrs.padding_end[0] = inside;
    return attrs;
  }

 private:
  /// A convolution along the rows.
  struct Window {
    Window(const ir::Graph& graph, const Op& op) {
      const auto& attrs = op.attrs.get<ir::ConvAttrs>();
      const bool makes_weights =
          op.kind == OpKind::conv_backward_weights || op.kind == OpKind::conv_transpose_backward_weights;
      const ir::Shape& weights = graph.tensor(makes_weights ? op.outputs[0] : op.inputs[1]).shape;
      reach = (weights[2] - 1) * attrs.dilation[0] + 1;
      stride = attrs.stride[0];
      padding_begin = attrs.padding_begin[0];
      padding_end = attrs.padding_end[0];
    }
    bool beside_each_other() const { return stride == reach && padding_begin == 0 && padding_end == 0; }

    std::int64_t reach, stride, padding_begin, padding_end;
  };

  static bool is_transposed(OpKind kind) {
    return kind == OpKind::conv_transpose || kind == OpKind::conv_transpose_backward_data ||
           kind == OpKind::conv_transpose_backward_weights;
  }

  /// 0 where the tensor is neither an image nor labels of its points.
  std::int64_t rows_of(const ir::Shape& shape) const {
    if (shape.rank() != image_rank_ && shape.rank() + 1 != image_rank_) return 0;
    return shape[axis_of(shape)];
  }

  std::size_t image_rank_;
  std::int64_t bands_;
};

/// How many axes the images have that a network takes; 0 if it takes none.
std::size_t image_rank_of(const ir::Graph& graph) {
  for (const ir::Port& port : graph.inputs) {
    if (port.tensor == ir::kNone) continue;
    const std::size_t rank = graph.tensor(port.tensor).shape.rank();
    return rank > 3 ? rank : 0;
  }
  return 0;
}

}  // namespace

std::int64_t default_bands(const ir::Graph& network, std::int64_t slice_samples) {
  const std::size_t image_rank = image_rank_of(network);
  if (slice_samples != 1 || image_rank == 0) return 1;
  std::vector<const Op*> wide;
  std::int64_t widest = 0;
  for (const Op& op : network.ops) {
    if (ir::op_facts(op.kind).cut_inputs == nullptr) continue;
    const std::int64_t bytes = cut_bytes(network, op) / batch_of(network);
    if (bytes > kSliceBytes) wide.push_back(&op);
    widest = std::max(widest, bytes);
  }
  std::int64_t bands = 1;
  while (bands * kSliceBytes < widest) bands *= 2;
  // What is wide and not cut would be put together and taken apart again.
  const RowWay way(image_rank, bands);
  const bool all =
      std::all_of(wide.begin(), wide.end(), [&](const Op* op) { return way.cuts(network, *op); });
  return all ? bands : 1;
}

ir::Graph cut_images(ir::Graph graph, std::int64_t bands) {
  const std::size_t image_rank = image_rank_of(graph);
  if (bands <= 1 || image_rank == 0) return graph;
  return Cutter(std::move(graph), RowWay(image_rank, bands), static_cast<std::size_t>(bands)).run();
}

}  // namespace penstock::lower
