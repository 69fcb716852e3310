#include "plan/reruns.h"

#include <algorithm>
#include <map>

#include "base/long_vector.h"

namespace penstock::plan {
namespace {

/// Longer chains are not worth their time.
constexpr std::size_t kMaxChain = 32;
/// Passes over the step until what is dropped can all be made; a few do as a rule.
constexpr int kMaxAttempts = 12;

}  // namespace

Recomputer::Recomputer(const Problem& problem, std::int64_t hold_fraction)
    : problem_(problem),
      hold_fraction_(hold_fraction),
      writes_(problem.storages.size()),
      missing_(problem.storages.size(), 0) {
  for (std::size_t i = 0; i < problem.graph->ops.size(); ++i) {
    for (const ir::TensorId t : problem.graph->ops[i].outputs) {
      writes_[storage_of(t)].push_back({static_cast<ir::OpId>(i), t});
    }
  }
}

/// What the storage holds when op `at` begins; kNone where nothing was written yet and it is not state.
ir::TensorId Recomputer::value_at(std::size_t s, ir::OpId at) const {
  const auto next = std::lower_bound(writes_[s].begin(), writes_[s].end(), at,
                                     [](const Write& write, ir::OpId op) { return write.op < op; });
  return next == writes_[s].begin() ? problem_.storages[s].begin : std::prev(next)->tensor;
}

/// Whether somebody reads the storage in op `at` or later, before it is overwritten.
bool Recomputer::is_needed_from(std::size_t s, ir::OpId at) const {
  const Access* next = problem_.storages[s].next_use(at);
  return next == nullptr ? problem_.storages[s].carried : next->reads;
}

/// Whether the next use of the storage is not soon.
bool Recomputer::is_far(std::size_t s, ir::OpId at) const {
  const Access* next = problem_.storages[s].next_use(at);
  return next != nullptr && next->position - at >= kLongGap;
}

/// Appends what makes `value` anew before op `at`; false if that cannot be. Of what nobody else needs any
/// more, inputs of up to `hold_bytes` each are held for it.
bool Recomputer::make(ir::TensorId value, ir::OpId at, std::int64_t hold_bytes,
                      LongVector<ir::OpId>& ops) const {
  const ir::OpId producer = problem_.graph->tensor(value).producer;
  if (producer == ir::kNone || producer >= at) return false;
  if (std::find(ops.begin(), ops.end(), producer) != ops.end()) return true;
  const ir::Op& op = problem_.graph->op(producer);
  if (ir::has_side_effects(op.kind) || ops.size() >= kMaxChain) return false;
  for (const ir::TensorId output : op.outputs) {
    if (problem_.storages[storage_of(output)].carried) return false;
  }
  for (const ir::TensorId input : op.inputs) {
    const std::size_t s = storage_of(input);
    const bool intact = value_at(s, at) == input && missing_[s] == 0;
    const bool there =
        intact && (is_needed_from(s, at) || problem_.storages[s].footprint_bytes <= hold_bytes);
    if (!there && !make(input, at, hold_bytes, ops)) return false;
  }
  ops.push_back(producer);
  return ops.size() <= kMaxChain;
}

/// The same in the order of the step, in which a wide value is rarely held for the sake of a deep one; false
/// also if the ops would not find their inputs, or harm what is still needed.
bool Recomputer::make_in_order(ir::TensorId value, ir::OpId at, std::int64_t hold_bytes,
                               LongVector<ir::OpId>& ops) const {
  if (!make(value, at, hold_bytes, ops)) return false;
  std::sort(ops.begin(), ops.end());
  return is_sound(ops, at);
}

std::int64_t Recomputer::hold_bytes(ir::StorageId s) const {
  return problem_.storage(s).footprint_bytes / hold_fraction_;
}

/// Whether the ops find their inputs, and leave every value that is still needed as it was.
bool Recomputer::is_sound(const LongVector<ir::OpId>& ops, ir::OpId at) const {
  std::map<std::size_t, ir::TensorId> holds;
  for (const ir::OpId op : ops) {
    for (const ir::TensorId input : problem_.graph->op(op).inputs) {
      const std::size_t s = storage_of(input);
      const auto found = holds.find(s);
      const bool held =
          found != holds.end() ? found->second == input : missing_[s] == 0 && value_at(s, at) == input;
      if (!held) return false;
    }
    for (const ir::TensorId output : problem_.graph->op(op).outputs) holds[storage_of(output)] = output;
  }
  return std::all_of(holds.begin(), holds.end(), [&](const auto& entry) {
    return entry.second == value_at(entry.first, at) || !is_needed_from(entry.first, at);
  });
}

LongVector<ir::OpId> Recomputer::chain(ir::StorageId s, std::size_t access) {
  const StorageInfo& storage = problem_.storage(s);
  if (storage.carried || access + 1 >= storage.accesses.size()) return {};
  const ir::OpId at = storage.accesses[access + 1].position;
  const ir::TensorId value = value_at(static_cast<std::size_t>(s), at);
  LongVector<ir::OpId> ops;
  if (value == ir::kNone || !make_in_order(value, at, hold_bytes(s), ops)) return {};
  return ops;
}

LongVector<Rerun> Recomputer::reruns(SwapSet& dropped, const LongVector<OnTheWay>* passing) {
  LongVector<Rerun> found;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    if (try_reruns(dropped, passing, found)) return found;
  }
  dropped = SwapSet(problem_);
  return {};
}

/// Whether a value that is made on the way to another, before op `at`, is given up at once.
bool Recomputer::passes(const LongVector<OnTheWay>* passing, std::size_t s, ir::OpId at) const {
  const OnTheWay how = passing == nullptr ? OnTheWay::by_rule : (*passing)[s];
  return how == OnTheWay::by_rule ? hold_fraction_ == kHoldLittle && is_far(s, at) : how == OnTheWay::passes;
}

/// One pass over the step. What cannot be made has to be held after all, and is taken out of `dropped`; since
/// earlier decisions built on its absence, the pass then does not count: false.
bool Recomputer::try_reruns(SwapSet& dropped, const LongVector<OnTheWay>* passing, LongVector<Rerun>& found) {
  found.clear();
  bool complete = true;
  LongVector<std::uint32_t> next_access(problem_.storages.size(), 0);
  std::fill(missing_.begin(), missing_.end(), 0);
  LongVector<ir::OpId> ops;
  LongVector<std::size_t> given_up;
  for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
    const auto at = static_cast<ir::OpId>(i);
    given_up.clear();
    for (const Use& use : problem_.ops[i].uses) {
      const auto s = static_cast<std::size_t>(use.storage);
      if (!use.reads || missing_[s] == 0) continue;
      ops.clear();
      if (!make_in_order(value_at(s, at), at, hold_bytes(use.storage), ops)) {
        dropped.set(use.storage, next_access[s] - 1, false);
        missing_[s] = 0;
        complete = false;
        continue;
      }
      for (const ir::OpId op : ops) {
        found.push_back({op, at});
        for (const ir::TensorId output : problem_.graph->op(op).outputs) {
          // Dead storages may hold another value now.
          const std::size_t made = storage_of(output);
          missing_[made] = value_at(made, at) == output ? 0 : 1;
          if (passes(passing, made, at)) given_up.push_back(made);
        }
      }
    }
    for (const std::size_t s : given_up) missing_[s] = 1;
    for (const Use& use : problem_.ops[i].uses) {
      const auto s = static_cast<std::size_t>(use.storage);
      const std::size_t access = next_access[s]++;
      const bool drop = dropped.contains(use.storage, access) && !problem_.storages[s].carried &&
                        is_needed_after(problem_.storages[s], access);
      missing_[s] = drop ? 1 : 0;
    }
  }
  std::fill(missing_.begin(), missing_.end(), 0);
  return complete;
}

}  // namespace penstock::plan
