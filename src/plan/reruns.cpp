#include "plan/reruns.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace penstock::plan {

Problem with_reruns(const Problem& problem, const std::vector<Rerun>& reruns) {
  std::vector<std::vector<ir::OpId>> before(problem.ops.size());
  for (const Rerun& rerun : reruns) before[static_cast<std::size_t>(rerun.before)].push_back(rerun.op);
  Problem longer = problem;
  longer.ops.clear();
  longer.order.clear();
  for (StorageInfo& storage : longer.storages) storage.accesses.clear();
  const auto append = [&](ir::OpId op) {
    const auto position = static_cast<ir::OpId>(longer.ops.size());
    longer.ops.push_back(problem.op(op));
    longer.order.push_back(op);
    for (const Use& use : problem.op(op).uses) {
      longer.storages[static_cast<std::size_t>(use.storage)].accesses.push_back(
          {position, use.reads, use.writes});
    }
  };
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    for (const ir::OpId op : before[i]) append(op);
    append(static_cast<ir::OpId>(i));
  }
  return longer;
}

namespace {

class Finder {
 public:
  Finder(const Problem& problem, const Profile& profile, int max_ops)
      : problem_(problem), profile_(profile), max_ops_(max_ops), writes_(problem.storages.size()) {
    for (std::size_t i = 0; i < problem.graph->ops.size(); ++i) {
      for (const ir::TensorId t : problem.graph->ops[i].outputs) {
        writes_[storage_of(t)].push_back({static_cast<ir::OpId>(i), t});
      }
    }
  }

  std::vector<Recomputation> find() {
    std::vector<Recomputation> found;
    for (std::size_t s = 0; s < problem_.storages.size(); ++s) {
      const StorageInfo& storage = problem_.storages[s];
      if (storage.carried) continue;
      for (std::size_t k = 1; k < storage.accesses.size(); ++k) {
        const Access& use = storage.accesses[k];
        // Uses of neighbouring ops leave nothing to gain.
        if (!use.reads || use.op - storage.accesses[k - 1].op < 2) continue;
        ops_.clear();
        const ir::TensorId value = value_at(static_cast<ir::StorageId>(s), use.op);
        if (value == ir::kNone || !make(value, use.op) || !is_sound(use.op)) continue;
        Recomputation recomputation{static_cast<ir::StorageId>(s), static_cast<std::int32_t>(k), ops_, 0};
        for (const ir::OpId op : ops_) recomputation.seconds += profile_.seconds(op);
        found.push_back(std::move(recomputation));
      }
    }
    return found;
  }

 private:
  struct Write {
    ir::OpId op;
    ir::TensorId tensor;
  };

  std::size_t storage_of(ir::TensorId t) const {
    return static_cast<std::size_t>(problem_.graph->tensor(t).storage);
  }

  /// What the storage holds when op `at` begins; kNone where nothing was written yet and it is not state.
  ir::TensorId value_at(ir::StorageId s, ir::OpId at) const {
    const auto& writes = writes_[static_cast<std::size_t>(s)];
    const auto next = std::lower_bound(writes.begin(), writes.end(), at,
                                       [](const Write& write, ir::OpId op) { return write.op < op; });
    return next == writes.begin() ? problem_.storage(s).begin : std::prev(next)->tensor;
  }

  /// Whether somebody reads the storage in op `at` or later, before it is overwritten.
  bool needed_from(ir::StorageId s, ir::OpId at) const {
    const auto& accesses = problem_.storage(s).accesses;
    const auto next = std::lower_bound(accesses.begin(), accesses.end(), at,
                                       [](const Access& access, ir::OpId op) { return access.op < op; });
    return next == accesses.end() ? problem_.storage(s).carried : next->reads;
  }

  /// Appends to ops_ what makes `value` anew before op `at`; false if that cannot be.
  bool make(ir::TensorId value, ir::OpId at) {
    const ir::OpId producer = problem_.graph->tensor(value).producer;
    if (producer == ir::kNone || producer >= at) return false;
    if (std::find(ops_.begin(), ops_.end(), producer) != ops_.end()) return true;
    const ir::Op& op = problem_.graph->op(producer);
    if (op.kind == ir::OpKind::data || static_cast<int>(ops_.size()) >= max_ops_) return false;
    for (const ir::TensorId output : op.outputs) {
      if (problem_.storages[storage_of(output)].carried) return false;
    }
    for (const ir::TensorId input : op.inputs) {
      const auto s = static_cast<ir::StorageId>(storage_of(input));
      const bool intact = value_at(s, at) == input && needed_from(s, at);
      if (!intact && !make(input, at)) return false;
    }
    ops_.push_back(producer);
    return static_cast<int>(ops_.size()) <= max_ops_;
  }

  /// Whether the ops find their inputs, and leave every value that is still needed as it was.
  bool is_sound(ir::OpId at) const {
    std::map<std::size_t, ir::TensorId> holds;
    const auto held = [&](std::size_t s) {
      const auto found = holds.find(s);
      return found == holds.end() ? value_at(static_cast<ir::StorageId>(s), at) : found->second;
    };
    for (const ir::OpId op : ops_) {
      for (const ir::TensorId input : problem_.graph->op(op).inputs) {
        if (held(storage_of(input)) != input) return false;
      }
      for (const ir::TensorId output : problem_.graph->op(op).outputs) holds[storage_of(output)] = output;
    }
    return std::all_of(holds.begin(), holds.end(), [&](const auto& entry) {
      const auto s = static_cast<ir::StorageId>(entry.first);
      return entry.second == value_at(s, at) || !needed_from(s, at);
    });
  }

  const Problem& problem_;
  const Profile& profile_;
  int max_ops_;
  std::vector<std::vector<Write>> writes_;  ///< by storage, ascending
  std::vector<ir::OpId> ops_;
};

}  // namespace

std::vector<Recomputation> find_recomputations(const Problem& problem, const Profile& profile, int max_ops) {
  return Finder(problem, profile, max_ops).find();
}

}  // namespace penstock::plan
