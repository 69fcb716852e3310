#pragma once

#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/op_table.h"
#include "lower/lower.h"

namespace penstock::lower {

/// What the neediest op of a network may have before it and behind it. Below, an op is too short to be worth
/// cutting; above, it decides how small a budget can be.
constexpr std::int64_t kSliceBytes = std::int64_t{160} << 20;

/// The batch of a network that takes images; 0 if it takes none.
std::int64_t batch_of(const ir::Graph& graph);

/// Positions [first, first + count) of an axis.
struct Range {
  std::int64_t first, count;
};

/// Part `k` of `parts` of an axis, which are as equal as can be.
Range part_range(std::int64_t extent, std::size_t k, std::size_t parts);

/// What an op looks like to the rules of the op table.
struct Shaped {
  Shaped(const ir::Graph& graph, const ir::Op& op);
  ir::OpShapes shapes() const { return {attrs, in, out}; }

  const ir::Attrs& attrs;
  ir::Shapes in, out;
};

/// Calls f(letter, tensor) for each input and output of an op that the op table knows how to cut.
template <typename F>
void for_each_operand(const ir::Op& op, const F& f) {
  const ir::OpFacts& facts = ir::op_facts(op.kind);
  for (std::size_t i = 0; i < op.inputs.size(); ++i) f(ir::letter_of(facts.cut_inputs, i), op.inputs[i]);
  for (std::size_t i = 0; i < op.outputs.size(); ++i) f(ir::letter_of(facts.cut_outputs, i), op.outputs[i]);
}

/// Bytes of all that an op would have in parts.
std::int64_t cut_bytes(const ir::Graph& graph, const ir::Op& op);

/// Batch norm's gradient needs two sums over everything, which are made first, and the residual's gradient
/// with them, and then its data.
struct Halves {
  ir::Op sums, data;
};
bool has_halves(ir::OpKind kind);
Halves halves_of(const ir::Graph& graph, const ir::Op& op);

/// How many positions beyond its own part of an input an op reads, before and behind.
struct Border {
  std::int64_t before = 0, behind = 0;
};

/// Along which axis tensors are cut, and what that means for an op.
class CutWay {
 public:
  virtual ~CutWay() = default;

  /// The axis of a tensor that is cut.
  virtual std::size_t axis_of(const ir::Shape& shape) const = 0;
  /// Whether the op runs part by part.
  virtual bool cuts(const ir::Graph& graph, const ir::Op& op) const = 0;
  /// Whether an input of this shape comes into the step in parts. Others come whole.
  virtual bool comes_in_parts(const ir::Shape& input) const = 0;
  /// Whether inputs come where they are needed first, and not where they stood.
  virtual bool inputs_wait() const = 0;
  /// Of input `input` of an op that is cut.
  virtual Border border_of(const ir::Graph& graph, const ir::Op& op, std::size_t input) const = 0;
  /// The attributes of part `k` of an op.
  virtual ir::Attrs attrs_of(const ir::Graph& graph, const ir::Op& op, std::size_t k,
                             std::size_t parts) const = 0;
};

/// Into how many parts each op of a step is cut, by op: `parts` where it is as wide as any, and fewer in
/// regions that are narrower, because fewer and longer ops are run faster and planned sooner. Each number
/// divides all that are larger. 1: the op is not cut.
std::vector<std::size_t> parts_by_width(const ir::Graph& graph, const CutWay& way, std::size_t parts);

/// Runs a step part by part: ops in groups, those of a group on one part after the other, because none needs
/// what another makes of other parts. What does (sums, statistics, ops that are not cut) stands behind the
/// group. Where an op reads what another has made in more parts or in fewer, they are put together or cut
/// again.
class Cutter {
 public:
  /// `parts`: of inputs and of all ops, but for those that `parts_by_op` has, which may be empty.
  Cutter(ir::Graph graph, const CutWay& way, std::size_t parts, std::vector<std::size_t> parts_by_op = {});

  ir::Graph run();

 private:
  void take(ir::Op op, std::size_t parts);
  bool needs_whole_group(const ir::Op& op) const;
  void finish_group();
  void append_whole(ir::Op op);
  bool reads_inputs_in_parts(const std::vector<ir::Op>& ops) const;
  void bring_in(std::size_t k);
  void bring_all_in(const std::vector<ir::Op>& readers);
  void make_whole(ir::TensorId id);
  ir::Phase phase_of(ir::TensorId id) const;
  ir::Shape part_shape(ir::TensorId whole, std::size_t k, std::size_t parts) const;
  ir::TensorId add_part(ir::TensorId whole, std::size_t k, bool is_cut);
  std::vector<ir::TensorId>& parts_of(ir::TensorId whole, std::size_t parts);
  ir::TensorId part_of(ir::TensorId whole, std::size_t k);
  ir::TensorId other_part_of(ir::TensorId whole, std::size_t k, std::size_t made);
  ir::TensorId taken_from(ir::TensorId from, std::int64_t first, const ir::Shape& shape, const ir::Name& name,
                          ir::Phase phase);
  ir::TensorId rows_of(ir::TensorId part, Range rows, const ir::Name& name);
  ir::TensorId with_border(ir::TensorId whole, std::size_t k, Border border);
  void forget_other_parts();
  void append_part(const ir::Op& op, std::size_t k);
  void append_sum(const ir::Op& op, ir::TensorId whole, std::size_t k);
  void append_combination(const ir::Op& op);

  ir::Graph graph_;
  const CutWay& way_;
  const std::size_t all_parts_;  ///< of inputs; the most that an op has
  std::vector<std::size_t> parts_by_op_;
  ir::Phase phase_ = ir::Phase::forward;  ///< of the op whose part is being appended
  bool in_backward_ = false;
  std::size_t group_parts_ = 0;
  /// In which the parts of a group run: each group begins with what the one before made last.
  std::vector<std::size_t> order_;
  bool backwards_ = true;
  std::vector<ir::Op> inputs_, inputs_in_parts_;  ///< ops of inputs that nothing has needed so far
  std::vector<ir::Op> group_;                     ///< cut ops that run part by part
  std::vector<ir::Op> behind_;                    ///< other ops, for when the group is through
  std::unordered_set<ir::TensorId> of_group_;     ///< what the group makes in parts
  std::unordered_set<ir::TensorId> later_;        ///< what is there only when the group is through
  std::map<std::pair<ir::TensorId, std::size_t>, std::vector<ir::TensorId>> parts_;  ///< by whole, parts
  std::unordered_map<ir::TensorId, std::size_t> in_parts_;  ///< what cut ops made, and in how many
  std::unordered_map<ir::TensorId, ir::TensorId> sum_;      ///< of the parts so far
};

}  // namespace penstock::lower
