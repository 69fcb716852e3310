#include <algorithm>
#include <map>
#include <optional>

#include "lower/passes.h"

namespace penstock::lower {
namespace {

using ir::Op;
using ir::OpId;
using ir::OpKind;
using ir::TensorId;

/// A slice that takes a range of one axis and all of the others.
struct AxisRange {
  std::int64_t axis = 0, begin = 0, count = 0;
};

std::optional<AxisRange> range_of(const ir::Graph& graph, const Op& op) {
  const ir::Shape& x = graph.tensor(op.inputs[0]).shape;
  const ir::Shape& y = graph.tensor(op.outputs[0]).shape;
  const auto& attrs = op.attrs_as<ir::StridedAttrs>();
  if (graph.tensor(op.inputs[0]).dtype != ir::DType::f32 || x.rank() != y.rank()) return std::nullopt;
  std::optional<AxisRange> range;
  for (std::size_t i = 0; i < x.rank(); ++i) {
    if (attrs.step[i] != 1) return std::nullopt;
    if (x[i] == y[i]) continue;
    if (range) return std::nullopt;
    range = AxisRange{static_cast<std::int64_t>(i), attrs.begin[i], y[i]};
  }
  return range;
}

struct Part {
  AxisRange range;
  OpId op = ir::kNone;
};

/// Whether the parts, in order, are the whole axis and nothing twice.
bool is_whole(const std::vector<Part>& parts, std::int64_t extent) {
  std::int64_t end = 0;
  for (const Part& part : parts) {
    if (part.range.begin != end) return false;
    end += part.range.count;
  }
  return parts.size() > 1 && end == extent;
}

}  // namespace

ir::Graph join_slices(ir::Graph graph) {
  std::map<std::pair<TensorId, std::int64_t>, std::vector<Part>> groups;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    if (op.kind != OpKind::slice) continue;
    const auto range = range_of(graph, op);
    if (range) groups[{op.inputs[0], range->axis}].push_back({*range, static_cast<OpId>(i)});
  }
  std::vector<bool> gone(graph.ops.size(), false);
  bool joined = false;
  for (auto& [key, parts] : groups) {
    const auto& [x, axis] = key;
    const OpId first = parts.front().op;
    std::sort(parts.begin(), parts.end(),
              [](const Part& a, const Part& b) { return a.range.begin < b.range.begin; });
    if (!is_whole(parts, graph.tensor(x).shape[static_cast<std::size_t>(axis)])) continue;
    Op split{OpKind::split, ir::Phase::forward, graph.op(first).name, {x}, {}, ir::AxisAttrs{axis}};
    for (const Part& part : parts) {
      split.outputs.push_back(graph.op(part.op).outputs[0]);
      gone[static_cast<std::size_t>(part.op)] = part.op != first;
    }
    graph.ops[static_cast<std::size_t>(first)] = std::move(split);
    joined = true;
  }
  return joined ? without_ops(std::move(graph), gone) : graph;
}

}  // namespace penstock::lower
