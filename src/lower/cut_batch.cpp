#include "lower/cutter.h"

namespace penstock::lower {
namespace {

using ir::Op;
using ir::OpKind;

/// The first axis of all that has samples.
class BatchWay : public CutWay {
 public:
  BatchWay(std::int64_t batch, CutInputs inputs) : batch_(batch), inputs_(inputs) {}

  std::size_t axis_of(const ir::Shape& /*shape*/) const override { return 0; }

  /// Whether the op can run on slices and has something to gain by it: all that has samples has the batch of
  /// them, and some of it is an image or a volume. Vectors of each sample are small, but in large batches.
  bool cuts(const ir::Graph& graph, const Op& op) const override {
    const ir::OpFacts& facts = ir::op_facts(op.kind);
    if (facts.cut_inputs == nullptr) return false;
    bool fits = true, wide = false;
    for_each_operand(op, [&](char letter, ir::TensorId id) {
      if (letter != 's') return;
      const ir::Shape& shape = graph.tensor(id).shape;
      fits = fits && shape.rank() > 0 && shape[0] == batch_;
      wide = wide || (shape.rank() > 2 && shape.elements(2, shape.rank()) > 1);
    });
    wide = wide || cut_bytes(graph, op) > kSliceBytes / 4;
    return fits && wide && (facts.can_cut == nullptr || facts.can_cut(Shaped(graph, op).shapes()));
  }

  /// Images and volumes, and labels for each of their points; a label or a vector a sample is small.
  bool comes_in_parts(const ir::Shape& input) const override {
    return inputs_ == CutInputs::in_parts && input.rank() > 2 && input[0] == batch_;
  }
  bool inputs_wait() const override { return true; }

  Border border_of(const ir::Graph& /*graph*/, const Op& /*op*/, std::size_t /*input*/) const override {
    return {};
  }

  ir::Attrs attrs_of(const ir::Graph& /*graph*/, const Op& op, std::size_t k,
                     std::size_t parts) const override {
    if (op.kind != OpKind::dropout && op.kind != OpKind::dropout_backward) return op.attrs;
    auto attrs = op.attrs_as<ir::DropoutAttrs>();
    attrs.first_sample = part_range(batch_, k, parts).first;
    return attrs;
  }

 private:
  std::int64_t batch_;
  CutInputs inputs_;
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
  const BatchWay way(batch, CutInputs::in_parts);
  std::int64_t widest = 0;
  for (const Op& op : network.ops) {
    if (way.cuts(network, op)) widest = std::max(widest, cut_bytes(network, op));
  }
  if (widest <= kSliceBytes) return 0;
  std::int64_t samples = 1;
  while (2 * samples * widest <= kSliceBytes * batch) samples *= 2;
  return samples;
}

ir::Graph cut_batch(ir::Graph graph, const BatchCut& cut) {
  const std::int64_t batch = batch_of(graph);
  if (cut.slice_samples <= 0 || batch <= cut.slice_samples) return graph;
  // As few slices as hold no more than that each.
  const auto slices = static_cast<std::size_t>((batch + cut.slice_samples - 1) / cut.slice_samples);
  const BatchWay way(batch, cut.inputs);
  std::vector<std::size_t> parts_by_op;
  if (cut.by_width) parts_by_op = parts_by_width(graph, way, slices);
  return Cutter(std::move(graph), way, slices, std::move(parts_by_op)).run();
}

}  // namespace penstock::lower
