#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/long_vector.h"
#include "fit/storage_map.h"
#include "kernels/kernel.h"
#include "lower/lower.h"
#include "memory/pool.h"
#include "plan/plan.h"
#include "run/trace.h"
#include "tier/tier.h"

namespace penstock::run {

/// Obeys plans and decides nothing: runs ops, moves storages between pool and tier. Holds the state
/// (parameters, optimizer state, statistics) between steps, wherever the plan's boundary leaves it. Several
/// graphs (training, evaluation) may run in turn on one executor as long as they share one storage map.
/// Between steps the state can be written and read.
///
/// The pool, the tier and the map must outlive it; while it lives nobody else uses pool and tier. One thread
/// calls it. Any call may throw RunError (from the tier); afterwards only the destructor may be called.
class Executor {
 public:
  /// `tier` may be null where no plan swaps. `homes`: where state goes that is written before the first step
  /// (plan::Plan::homes).
  Executor(Pool& pool, const fit::StorageMap& map, Tier* tier, const LongVector<std::int64_t>& homes = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Fills a storage of the state before the first step or between steps. `fill` gets all of its bytes,
  /// undefined if it never was written.
  void write_state(ir::StorageId storage, const std::function<void(void*)>& fill);
  /// Lets `use` see a storage of the state, which must have been written, between steps.
  void read_state(ir::StorageId storage, const std::function<void(const void*)>& use);

  /// Lets `use` work in the memory of a storage that is not state, between steps.
  void borrow(ir::StorageId storage, const std::function<void(void*)>& use);

  /// Runs one step. All state of the plan's boundary must have been written. Where the state is not at that
  /// boundary (first step, another plan than last time, state read in between) it is moved there first.
  StepStats run(const lower::Executable& step, const plan::Plan& plan, const kernels::StepContext& context);

  /// Waits for all transfers that cross the step's boundary.
  void quiesce();

  /// From now on each step appends its events to `trace` (null: to none).
  void set_trace(Trace* trace);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::run
