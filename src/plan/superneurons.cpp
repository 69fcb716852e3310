#include <algorithm>

#include "base/long_vector.h"
#include "ir/op_table.h"
#include "plan/budget_error.h"
#include "plan/lru_walk.h"
#include "plan/policies.h"
#include "plan/reruns.h"

namespace penstock::plan {
namespace {

/// Ops whose outputs are stored; all others are cheap to run again.
bool is_expensive(const ir::Op& op) {
  return ir::op_facts(op.kind).dear;
}

/// Whether the op joins branches: batch norm with the residual fused into it counts as the join it replaces.
bool is_join(const ir::Op& op) {
  const auto* norm = op.attrs.get_if<ir::NormAttrs>();
  return op.kind == ir::OpKind::batch_norm && norm != nullptr && norm->add;
}

/// The values of cheap ops that are dropped after forward, and how each segment of cheap ops makes them anew.
struct Dropped {
  SwapSet gaps;
  LongVector<OnTheWay> on_the_way;  ///< by storage; memory-centric: made for each consumer, freed at once
};

class Segments {
 public:
  explicit Segments(const Problem& problem)
      : problem_(problem),
        dropped_{SwapSet(problem), LongVector<OnTheWay>(problem.storages.size(), OnTheWay::by_rule)} {}

  Dropped find() {
    std::int64_t largest_bytes = 0;
    for (std::size_t i = 0; i < problem_.ops.size(); ++i)
      largest_bytes = std::max(largest_bytes, problem_.ops[i].need_bytes);
    for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
      const ir::Op& op = problem_.graph->ops[i];
      if (op.phase != ir::Phase::forward) break;
      if (is_expensive(op) || is_join(op)) {
        close(largest_bytes);
      } else {
        for (const ir::TensorId output : op.outputs)
          segment_.push_back(problem_.graph->tensor(output).storage);
      }
    }
    close(largest_bytes);
    return std::move(dropped_);
  }

 private:
  bool is_backward(const Access& access) const {
    return problem_.graph->op(access.position).phase != ir::Phase::forward;
  }

  /// Decides about the cheap ops since the last expensive one.
  void close(std::int64_t largest_bytes) {
    std::int64_t bytes = 0;
    for (const ir::StorageId s : segment_) bytes += problem_.storage(s).footprint_bytes;
    const bool speed_centric = bytes <= largest_bytes;
    for (const ir::StorageId s : segment_) drop(s, speed_centric);
    segment_.clear();
  }

  void drop(ir::StorageId s, bool speed_centric) {
    const StorageInfo& storage = problem_.storage(s);
    if (storage.carried || storage.footprint_bytes == 0) return;
    for (std::size_t k = 0; k + 1 < storage.accesses.size(); ++k) {
      if (!is_backward(storage.accesses[k + 1]) || !is_needed_after(storage, k)) continue;
      dropped_.gaps.set(s, k, 1);
      if (speed_centric) return;
    }
    dropped_.on_the_way[static_cast<std::size_t>(s)] = OnTheWay::passes;
  }

  const Problem& problem_;
  Dropped dropped_;
  LongVector<ir::StorageId> segment_;
};

}  // namespace

Plan plan_superneurons(const Problem& problem) {
  Dropped dropped{SwapSet(problem), {}};
  const bool fits =
      lru_bytes(Step(problem)) <= problem.budget_bytes && keep_bytes(problem) <= problem.budget_bytes;
  LongVector<Rerun> reruns;
  if (!fits) {
    dropped = Segments(problem).find();
    Recomputer recomputer(problem);
    reruns = recomputer.reruns(dropped.gaps, &dropped.on_the_way);
  }
  const Step longer(problem, reruns);
  const std::int64_t needed_bytes = lru_bytes(longer);
  if (needed_bytes > problem.budget_bytes) {
    throw BudgetError("superneurons", needed_bytes, problem.budget_bytes);
  }
  LongVector<std::uint8_t> expensive;
  for (Position p = 0; p < longer.positions(); ++p) {
    expensive.push_back(is_expensive(problem.graph->op(longer.op(p))) ? 1 : 0);
  }
  // Which values go is found first; then their copy-outs start right where their gaps begin.
  LruWalk first(longer, expensive, nullptr);
  first.walk();
  LruWalk second(longer, expensive, &first.evicted());
  second.walk();
  return second.finish("superneurons");
}

}  // namespace penstock::plan
