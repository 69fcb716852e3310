#include "plan/problem.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "base/long_vector.h"

namespace penstock::plan {
namespace {

void add_use(RowsBuilder<Use>& uses, ir::StorageId storage, bool reads, ir::TensorId made) {
  const std::span<Use> row = uses.row();
  const auto found = std::find_if(row.begin(), row.end(), [&](const Use& u) { return u.storage == storage; });
  if (found == row.end()) {
    uses.push_back({storage, reads, made != ir::kNone, made});
  } else {
    found->reads = found->reads || reads;
    found->writes = found->writes || made != ir::kNone;
    if (made != ir::kNone) found->made = made;
  }
}

void describe_storages(Problem& problem, const PoolRule& rule, std::span<const std::int64_t> storage_bytes) {
  const ir::Graph& graph = *problem.graph;
  problem.storages.resize(std::max(storage_bytes.size(), static_cast<std::size_t>(graph.storages)));
  LongVector<bool> pinned(problem.storages.size(), false);
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const ir::Tensor& tensor = graph.tensors[t];
    StorageInfo& storage = problem.storages[static_cast<std::size_t>(tensor.storage)];
    if (storage.tensor == ir::kNone) {
      storage.tensor = static_cast<ir::TensorId>(t);
      storage.role = tensor.role;
    }
    storage.size_bytes = std::max(storage.size_bytes, tensor.size_bytes());
    if (tensor.pinned) pinned[static_cast<std::size_t>(tensor.storage)] = true;
  }
  for (std::size_t s = 0; s < problem.storages.size(); ++s) {
    StorageInfo& storage = problem.storages[s];
    if (s < storage_bytes.size()) storage.size_bytes = std::max(storage.size_bytes, storage_bytes[s]);
    if (storage.size_bytes == 0) continue;
    storage.footprint_bytes = rule.footprint_bytes(storage.size_bytes);
    storage.swappable = !pinned[s] && rule.swappable(static_cast<ir::StorageId>(s), storage.size_bytes);
  }
}

/// Scratch bytes of an op, by variant.
using ScratchOf = std::function<std::span<const std::int64_t>(std::size_t op)>;

void describe_ops(Problem& problem, const PoolRule& rule, const ScratchOf& scratch_of) {
  const ir::Graph& graph = *problem.graph;
  std::size_t operands = 0;
  for (const ir::Op& op : graph.ops) operands += op.inputs.size() + op.outputs.size();
  RowsBuilder<Use> uses(graph.ops.size(), operands);
  RowsBuilder<std::int64_t> scratch(graph.ops.size(), graph.ops.size());
  LongVector<std::int64_t> need_bytes(graph.ops.size());
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    for (const ir::TensorId t : graph.ops[i].inputs) add_use(uses, graph.tensor(t).storage, true, ir::kNone);
    for (const ir::TensorId t : graph.ops[i].outputs) add_use(uses, graph.tensor(t).storage, false, t);
    for (const std::int64_t bytes : scratch_of(i))
      scratch.push_back(bytes == 0 ? 0 : rule.footprint_bytes(bytes));
    require(!scratch.row().empty(), "make_problem: an op has no variant");
    need_bytes[i] = scratch.row()[0];
    for (const Use& use : uses.row()) need_bytes[i] += problem.storage(use.storage).footprint_bytes;
    uses.end_row();
    scratch.end_row();
  }
  problem.ops = StepOps(uses.finish(), scratch.finish(), std::move(need_bytes));
}

void find_accesses(Problem& problem) {
  LongVector<std::uint32_t> first(problem.storages.size() + 1, 0);
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    for (const Use& use : problem.ops[i].uses) ++first[static_cast<std::size_t>(use.storage) + 1];
  }
  for (std::size_t s = 0; s + 1 < first.size(); ++s) first[s + 1] += first[s];
  LongVector<Access> accesses(first.back());
  LongVector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    for (const Use& use : problem.ops[i].uses)
      accesses[next[static_cast<std::size_t>(use.storage)]++] = {static_cast<Position>(i), use.reads,
                                                                 use.writes};
  }
  problem.accesses = Rows<Access>(std::move(first), std::move(accesses));
  for (std::size_t s = 0; s < problem.storages.size(); ++s)
    problem.storages[s].accesses = problem.accesses[s];
}

Problem make(const ir::Graph& graph, const ScratchOf& scratch_of, const PoolRule& rule,
             std::span<const std::int64_t> storage_bytes, const std::optional<Boundary>& boundary) {
  Problem problem;
  problem.graph = &graph;
  problem.budget_bytes = rule.budget_bytes;
  problem.fixed_bytes = rule.fixed_bytes;
  problem.tier_bytes = rule.tier_bytes;
  problem.remaps = rule.remaps;
  problem.boundary = boundary;
  describe_storages(problem, rule, storage_bytes);
  describe_ops(problem, rule, scratch_of);
  find_accesses(problem);
  for (const ir::Carried& state : graph.carried) {
    StorageInfo& storage = problem.storages[static_cast<std::size_t>(graph.tensor(state.begin).storage)];
    require(graph.tensor(state.end).storage == graph.tensor(state.begin).storage,
            "make_problem: state ends in another storage than it began in");
    storage.carried = true;
    storage.begin = state.begin;
    storage.end = state.end;
  }
  if (boundary) {
    for (const Standing& standing : *boundary) {
      require(standing.storage >= 0 && static_cast<std::size_t>(standing.storage) < problem.storages.size(),
              "make_problem: the boundary names a storage that does not exist");
      StorageInfo& storage = problem.storages[static_cast<std::size_t>(standing.storage)];
      if (storage.carried) continue;
      require(storage.accesses.empty(), "make_problem: the boundary names a storage that is not state");
      storage.carried = true;
      storage.begin = storage.end = kForeignValue;
    }
  }
  return problem;
}

}  // namespace

std::string Problem::storage_name(ir::StorageId id) const {
  const ir::TensorId tensor = storage(id).tensor;
  return tensor == ir::kNone ? "storage " + std::to_string(id) : graph->tensor(tensor).name.text();
}

LongVector<ir::StorageId> Problem::state() const {
  LongVector<ir::StorageId> ids;
  for (std::size_t s = 0; s < storages.size(); ++s) {
    if (storages[s].carried) ids.push_back(static_cast<ir::StorageId>(s));
  }
  return ids;
}

PoolRule grain_rule(std::int64_t budget_bytes, std::int64_t grain_bytes) {
  PoolRule rule;
  rule.budget_bytes = budget_bytes;
  rule.footprint_bytes = [grain_bytes](std::int64_t size_bytes) { return round_up(size_bytes, grain_bytes); };
  rule.swappable = [](ir::StorageId, std::int64_t) { return true; };
  return rule;
}

void StepOps::set_overwrites(std::size_t op, std::span<const Overwrite> overwrites) {
  RowsBuilder<Overwrite> rows(size());
  for (std::size_t i = 0; i < size(); ++i) {
    for (const Overwrite& pair : i == op ? overwrites : (*this)[i].overwrites) rows.push_back(pair);
    rows.end_row();
  }
  overwrites_ = rows.finish();
}

Problem make_problem(const ir::Graph& graph, std::span<const std::int64_t> scratch_bytes,
                     const PoolRule& rule, std::span<const std::int64_t> storage_bytes,
                     const std::optional<Boundary>& boundary) {
  require(scratch_bytes.empty() || scratch_bytes.size() == graph.ops.size(),
          "make_problem: scratch bytes are not given for each op");
  static constexpr std::int64_t kNothing = 0;
  const auto scratch_of = [&](std::size_t op) {
    return scratch_bytes.empty() ? std::span(&kNothing, 1) : scratch_bytes.subspan(op, 1);
  };
  return make(graph, scratch_of, rule, storage_bytes, boundary);
}

Problem make_problem(const ir::Graph& graph, const VariantScratch& scratch_bytes, const PoolRule& rule,
                     std::span<const std::int64_t> storage_bytes, const std::optional<Boundary>& boundary) {
  require(scratch_bytes.bytes.size() == graph.ops.size(),
          "make_problem: scratch bytes are not given for each op");
  const auto scratch_of = [&](std::size_t op) {
    return std::span<const std::int64_t>(scratch_bytes.bytes[op]);
  };
  return make(graph, scratch_of, rule, storage_bytes, boundary);
}

}  // namespace penstock::plan
