#include <algorithm>
#include <numeric>

#include "lower/cutter.h"

namespace penstock::lower {
namespace {

using ir::Op;
using ir::TensorId;

/// A region runs in parts of its own if what it shares with others, which is copied, is at most this of what
/// its ops pass over.
constexpr double kSharedShare = 0.1;

/// Numbers of parts, falling: each divides the one before and is at most half of it.
std::vector<std::size_t> levels_below(std::size_t parts) {
  std::vector<std::size_t> levels;
  while (parts > 1) {
    std::size_t next = parts / 2;
    while (parts % next != 0) --next;
    levels.push_back(next);
    parts = next;
  }
  return levels;
}

class Widths {
 public:
  Widths(const ir::Graph& graph, const CutWay& way, std::size_t parts)
      : graph_(graph), all_parts_(parts), ops_(graph.ops.size()), users_(graph.tensors.size()) {
    const auto readers = ir::consumers(graph);
    std::vector<TensorId> inputs;
    std::int64_t widest = 0;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const Op& op = graph.ops[i];
      if (op.kind == ir::OpKind::input && way.comes_in_parts(graph.tensor(op.outputs[0]).shape))
        inputs.push_back(op.outputs[0]);
      const std::vector<Op> forms = forms_of(op);
      if (!way.cuts(graph, forms.back())) continue;
      ops_[i].parts = parts;
      measure(i, forms);
      ops_[i].cut_bytes -= overwritten_bytes(i, readers);
      widest = std::max(widest, ops_[i].cut_bytes);
    }
    // Images come into the step in the most parts.
    for (const TensorId input : inputs) {
      for (const std::size_t i : users(input)) ops_[i].cut_bytes = widest;
    }
    most_ = widest / static_cast<std::int64_t>(parts);
  }

  std::vector<std::size_t> run() {
    for (const std::size_t parts : levels_below(all_parts_)) take_level(parts);
    std::vector<std::size_t> result;
    for (const OpWidth& op : ops_) result.push_back(op.parts);
    return result;
  }

 private:
  struct OpWidth {
    std::size_t parts = 1;          ///< 1: is not cut
    std::vector<TensorId> samples;  ///< what it reads and writes in parts
    std::int64_t cut_bytes = 0, whole_bytes = 0;
    bool fits = false, seen = false;  ///< in this level
  };

  const std::vector<std::size_t>& users(TensorId id) const { return users_[static_cast<std::size_t>(id)]; }

  /// The ops that are cut in the place of this one.
  std::vector<Op> forms_of(const Op& op) const {
    if (!has_halves(op.kind)) return {op};
    auto [sums, data] = halves_of(graph_, op);
    return {std::move(sums), std::move(data)};
  }

  /// Both halves of an op run in the same parts, so what either has counts, once.
  void measure(std::size_t i, const std::vector<Op>& forms) {
    std::vector<TensorId> before;  // in the forms before this one
    for (const Op& form : forms) {
      for_each_operand(form, [&](char letter, TensorId id) {
        if (std::find(before.begin(), before.end(), id) != before.end()) return;
        const std::int64_t bytes = graph_.tensor(id).size_bytes();
        (letter == 's' ? ops_[i].cut_bytes : ops_[i].whole_bytes) += bytes;
        if (letter != 's') return;
        ops_[i].samples.push_back(id);
        users_[static_cast<std::size_t>(id)].push_back(i);
      });
      for_each_operand(form, [&](char /*letter*/, TensorId id) { before.push_back(id); });
    }
  }

  /// What one pass over memory makes may lie where something was that nothing reads any more.
  std::int64_t overwritten_bytes(std::size_t i, const Rows<ir::OpId>& readers) const {
    const Op& op = graph_.ops[i];
    if (ir::op_facts(op.kind).flops != nullptr || op.outputs.empty()) return 0;
    const std::int64_t bytes = graph_.tensor(op.outputs[0]).size_bytes();
    const bool dies = std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId id) {
      return graph_.tensor(id).size_bytes() == bytes && graph_.tensor(id).role != ir::Role::input &&
             readers[static_cast<std::size_t>(id)].back() == static_cast<ir::OpId>(i);
    });
    return dies ? bytes : 0;
  }

  void take_level(std::size_t parts) {
    find_fitting(static_cast<std::int64_t>(parts));
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].seen || !ops_[i].fits) continue;
      const std::vector<std::size_t> region = region_of(i);
      if (!is_worth_it(region, parts)) continue;
      for (const std::size_t k : region) ops_[k].parts = parts;
    }
  }

  /// Which ops on one of so many parts need no more memory than the widest on one of the most (where weights
  /// alone are larger: little beside them), and share little with those that do not.
  void find_fitting(std::int64_t parts) {
    for (OpWidth& op : ops_) {
      op.seen = false;
      op.fits = op.parts > 1 && op.cut_bytes / parts <= std::max(most_ - op.whole_bytes, most_ / 4);
    }
    bool changed = true;
    while (changed) {
      changed = false;
      for (OpWidth& op : ops_) {
        if (!op.fits || !shares_too_much(op, parts)) continue;
        op.fits = false;
        changed = true;
      }
    }
  }

  /// What an op shares with ops outside is copied, so the copy must fit as well, a kernel's workspace must
  /// not be shared at all, and an op that shares more with those outside than with those inside belongs to
  /// them.
  bool shares_too_much(const OpWidth& op, std::int64_t parts) const {
    std::int64_t inside = 0, outside = 0;
    for (const TensorId id : op.samples) {
      const ir::Tensor& tensor = graph_.tensor(id);
      bool leaves = false, stays = false;
      for (const std::size_t i : users(id)) {
        leaves = leaves || !ops_[i].fits;
        stays = stays || (ops_[i].fits && &ops_[i] != &op);
      }
      const bool fits = tensor.role != ir::Role::workspace && 2 * tensor.size_bytes() / parts <= most_;
      if (leaves && !fits) return true;
      if (leaves) outside += tensor.size_bytes();
      if (stays) inside += tensor.size_bytes();
    }
    return outside > inside;
  }

  /// All ops that fit and are joined to `first` by what they read and write.
  std::vector<std::size_t> region_of(std::size_t first) {
    std::vector<std::size_t> region = {first};
    ops_[first].seen = true;
    for (std::size_t next = 0; next < region.size(); ++next) {
      for (const TensorId id : ops_[region[next]].samples) {
        for (const std::size_t i : users(id)) {
          if (ops_[i].seen || !ops_[i].fits) continue;
          ops_[i].seen = true;
          region.push_back(i);
        }
      }
    }
    return region;
  }

  /// What a region shares with ops outside is copied where those run in other parts.
  bool is_worth_it(const std::vector<std::size_t>& region, std::size_t parts) const {
    std::vector<bool> inside(ops_.size(), false);
    for (const std::size_t i : region) inside[i] = true;
    double passed = 0, shared = 0;
    for (const std::size_t i : region) {
      for (const TensorId id : ops_[i].samples) {
        const auto bytes = static_cast<double>(graph_.tensor(id).size_bytes());
        passed += bytes;
        const auto& others = users(id);
        const bool leaves = std::any_of(others.begin(), others.end(),
                                        [&](std::size_t k) { return !inside[k] && ops_[k].parts != parts; });
        // Counted once for each op that reads or writes it, which is more than it is copied.
        if (leaves) shared += bytes;
      }
    }
    return shared <= kSharedShare * passed;
  }

  const ir::Graph& graph_;
  const std::size_t all_parts_;
  std::vector<OpWidth> ops_;
  std::vector<std::vector<std::size_t>> users_;  ///< cut ops that read or write a tensor
  std::int64_t most_ = 0;                        ///< that the widest op has in one of the most parts
};

}  // namespace

std::vector<std::size_t> parts_by_width(const ir::Graph& graph, const CutWay& way, std::size_t parts) {
  return Widths(graph, way, parts).run();
}

}  // namespace penstock::lower
