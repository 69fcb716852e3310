#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/long_vector.h"
#include "base/rows.h"
#include "ir/graph.h"
#include "plan/plan.h"

namespace penstock::plan {

/// Stands for the value of state that the graph does not know: another graph's optimizer state, which lies in
/// memory or on the tier while this graph runs.
inline constexpr ir::TensorId kForeignValue = -2;

/// An index into a step's order of execution. An ir::OpId is an index into the graph. In the order of the
/// graph the two agree, op i stands at position i; where a policy runs ops again the step is longer (step.h).
using Position = std::int32_t;

/// One op's use of one storage. Reads and writes both: the op changes it in standing.
struct Use {
  ir::StorageId storage : 30 = ir::kNone;
  bool reads : 1 = false;
  bool writes : 1 = false;
  ir::TensorId made = ir::kNone;  ///< what it holds after the op, if that writes it
};
static_assert(sizeof(Use) == 8);

/// An op may write storage `to` over what it reads in storage `from`: both take the same memory.
struct Overwrite {
  ir::StorageId from = ir::kNone;
  ir::StorageId to = ir::kNone;
  bool operator==(const Overwrite&) const = default;
};

/// What an op uses: a look into the problem that has it, for as long as that or a copy of it is there.
struct StepOp {
  std::span<const Use> uses;                    ///< each storage once
  std::span<const std::int64_t> scratch_bytes;  ///< footprint of the scratch, by variant; at least one
  std::int64_t need_bytes = 0;                  ///< footprint of all uses and of variant 0's scratch
  /// What its kernels allow, where the two storages are not one already. Only a pool that remaps has plans
  /// that do it.
  std::span<const Overwrite> overwrites;
};

/// What all ops of a step use. Copies share it.
class StepOps {
 public:
  StepOps() = default;
  StepOps(Rows<Use> uses, Rows<std::int64_t> scratch_bytes, LongVector<std::int64_t> need_bytes)
      : uses_(std::move(uses)),
        scratch_bytes_(std::move(scratch_bytes)),
        need_bytes_(std::make_shared<const LongVector<std::int64_t>>(std::move(need_bytes))) {}

  std::size_t size() const { return uses_.size(); }
  StepOp operator[](std::size_t op) const {
    return {uses_[op], scratch_bytes_[op], (*need_bytes_)[op],
            overwrites_.size() == 0 ? std::span<const Overwrite>() : overwrites_[op]};
  }
  void set_overwrites(Rows<Overwrite> overwrites) { overwrites_ = std::move(overwrites); }
  /// Those of one op, with a copy of all others.
  void set_overwrites(std::size_t op, std::span<const Overwrite> overwrites);

 private:
  Rows<Use> uses_;
  Rows<std::int64_t> scratch_bytes_;
  std::shared_ptr<const LongVector<std::int64_t>> need_bytes_;
  Rows<Overwrite> overwrites_;  ///< no rows: none at all
};

/// A use seen from the storage.
struct Access {
  Position position : 30 = ir::kNone;
  bool reads : 1 = false;
  bool writes : 1 = false;
};
static_assert(sizeof(Access) == 4);

struct StorageInfo {
  std::int64_t size_bytes = 0;       ///< moved when it is swapped
  std::int64_t footprint_bytes = 0;  ///< counted against the budget while it has memory
  ir::TensorId begin = ir::kNone;    ///< of state: its value when the step begins, and when it ends
  ir::TensorId end = ir::kNone;
  ir::TensorId tensor = ir::kNone;  ///< the first tensor in it; kNone if this graph has none
  ir::Role role = ir::Role::activation;
  bool swappable = false;
  bool carried = false;              ///< state: has a value at the boundary
  std::span<const Access> accesses;  ///< in the order of the graph; in Problem::accesses

  /// The first use by this op or a later one; null: there is none.
  const Access* next_use(Position from) const {
    const auto next =
        std::lower_bound(accesses.begin(), accesses.end(), from,
                         [](const Access& access, Position limit) { return access.position < limit; });
    return next == accesses.end() ? nullptr : &*next;
  }
};

inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// All that policies, checker and simulator see of a step: which op uses which storages, sizes, the budget.
/// Plain data; the graph must outlive it.
struct Problem {
  const ir::Graph* graph = nullptr;
  std::int64_t budget_bytes = 0;       ///< for the footprints of storages and scratch
  std::int64_t fixed_bytes = 0;        ///< what the pool takes besides, whatever the plan; for reports
  std::int64_t tier_bytes = kNoLimit;  ///< for the places of all storages that are ever on the tier
  bool remaps =
      true;  ///< the pool moves memory: giving it to a storage takes time, and a storage can adopt it
  LongVector<StorageInfo> storages;
  StepOps ops;            ///< by op
  Rows<Access> accesses;  ///< by storage
  std::optional<Boundary>
      boundary;  ///< given: the plan must begin and end here; otherwise the policy chooses

  const StorageInfo& storage(ir::StorageId id) const { return storages[static_cast<std::size_t>(id)]; }
  StepOp op(ir::OpId id) const { return ops[static_cast<std::size_t>(id)]; }
  std::string storage_name(ir::StorageId id) const;
  /// All storages with a value at the boundary, ascending.
  LongVector<ir::StorageId> state() const;
};

/// How the pool rounds, and what it has for storages and scratch.
struct PoolRule {
  std::int64_t budget_bytes = 0;
  std::int64_t fixed_bytes = 0;
  std::int64_t tier_bytes = kNoLimit;
  bool remaps = true;
  std::function<std::int64_t(std::int64_t size_bytes)> footprint_bytes;
  std::function<bool(ir::StorageId storage, std::int64_t size_bytes)> swappable;
};

/// A rule that rounds to multiples of `grain_bytes` and lets everything be swapped.
PoolRule grain_rule(std::int64_t budget_bytes, std::int64_t grain_bytes);

/// `scratch_bytes`: by op; empty: none. `storage_bytes`: the sizes of all storages of the shared numbering,
/// where other graphs use the pool as well; empty: those of this graph. `boundary`: see Problem.
Problem make_problem(const ir::Graph& graph, std::span<const std::int64_t> scratch_bytes,
                     const PoolRule& rule, std::span<const std::int64_t> storage_bytes = {},
                     const std::optional<Boundary>& boundary = std::nullopt);

/// Scratch bytes by op and variant, at least one of each op; what it is made of must outlive it.
struct VariantScratch {
  // Converts, so that callers may pass their vector; that it has no default lets {} mean no scratch at all.
  VariantScratch(const LongVector<LongVector<std::int64_t>>& scratch_bytes) : bytes(scratch_bytes) {}
  std::span<const LongVector<std::int64_t>> bytes;
};

Problem make_problem(const ir::Graph& graph, const VariantScratch& scratch_bytes, const PoolRule& rule,
                     std::span<const std::int64_t> storage_bytes = {},
                     const std::optional<Boundary>& boundary = std::nullopt);

}  // namespace penstock::plan
