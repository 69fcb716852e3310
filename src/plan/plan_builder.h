#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/long_vector.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace penstock::plan {

/// Where policies write their instructions: keeps count of memory and of where each storage is. An earlier
/// instruction can be taken back as long as nothing was built on it, as if it had never been. The problem
/// must outlive it.
class PlanBuilder {
 public:
  PlanBuilder(const Problem& problem, Boundary start);

  bool mapped(ir::StorageId s) const { return at(s).mapped; }
  Transfer pending(ir::StorageId s) const { return at(s).pending; }
  /// The tier has the value that memory has, or will have once the pending transfer is complete.
  bool clean(ir::StorageId s) const {
    return at(s).in_memory != ir::kNone && at(s).in_memory == at(s).on_tier;
  }
  std::int64_t used_bytes() const { return used_bytes_; }
  std::int64_t free_bytes() const { return problem_.budget_bytes - used_bytes_; }
  /// The most there ever was, scratch of the ops included, with what was taken back.
  std::int64_t peak_bytes() const { return peak_bytes_; }

  void acquire(ir::StorageId s);
  void swap_in(ir::StorageId s);
  void swap_out(ir::StorageId s);
  void wait(ir::StorageId s);
  void release(ir::StorageId s);
  /// The op that is run at once behind it writes `pair.to` over `pair.from`; nothing that it uses is being
  /// moved.
  void adopt(const Overwrite& pair);
  /// Waits for the reads of what the op uses and the writes of what it changes, then runs it.
  void run(ir::OpId op, std::int32_t variant = 0);

  /// Whether the pending transfer began in this plan and can be taken back.
  bool can_cancel(ir::StorageId s) const;
  /// Takes the pending swap_in back: the storage has no memory. Or the pending swap_out: it is not clean.
  void cancel(ir::StorageId s);

  /// Where the state is now.
  Boundary boundary() const;
  Plan finish(std::string policy);

 private:
  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);
  struct State {
    bool mapped = false;
    Transfer pending = Transfer::none;
    ir::TensorId in_memory = ir::kNone;  ///< the value, once the pending transfer is complete
    ir::TensorId on_tier = ir::kNone;
    ir::TensorId before = ir::kNone;  ///< what the tier had before the pending write
    std::size_t since = kNever;       ///< the instruction that began the pending transfer
  };
  const State& at(ir::StorageId s) const { return states_[static_cast<std::size_t>(s)]; }
  State& at(ir::StorageId s) { return states_[static_cast<std::size_t>(s)]; }
  void emit(Action action, std::int32_t id, std::int32_t variant = 0);
  void map(ir::StorageId s);

  const Problem& problem_;
  Boundary start_;
  LongVector<State> states_;
  LongVector<Instruction> instructions_;
  std::int64_t used_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
};

/// Everything resident that cannot be swapped; the rest of the state on the tier.
Boundary boundary_on_tier(const Problem& problem);
/// All state resident.
Boundary boundary_in_memory(const Problem& problem);

}  // namespace penstock::plan
