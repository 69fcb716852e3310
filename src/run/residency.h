#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "base/long_vector.h"
#include "fit/storage_map.h"
#include "memory/pool.h"
#include "plan/plan.h"
#include "plan/problem.h"
#include "run/trace.h"
#include "tier/tier.h"

namespace penstock::run {

/// Where each storage is, and the five ways to move it. Keeps the truth about pool and tier; decides nothing.
/// Pool, map and tier must outlive it. One thread.
class Residency {
 public:
  Residency(Pool& pool, const fit::StorageMap& map, Tier* tier);

  /// Where slots are between steps from now on, by slot; empty for a pool that places slots itself.
  void set_homes(const LongVector<std::int64_t>& homes) { homes_ = homes; }

  bool resident(ir::StorageId s) const { return pool_.held(s); }
  plan::Transfer pending(ir::StorageId s) const { return at(s).pending; }
  /// The tier has the present value, or will have once the pending write is complete. Of what is not state
  /// this holds as long as the plan reads it from there: afterwards others may have its place.
  bool on_tier(ir::StorageId s) const { return at(s).on_tier; }
  bool has_extent(ir::StorageId s) const { return map_.place(static_cast<std::size_t>(s)) >= 0; }
  /// Whether there is room for it where it is between steps.
  bool fits(ir::StorageId s) const { return pool_.fits(s, home(s)); }
  /// Whether it has memory, but not where it is between steps by the present homes.
  bool is_elsewhere(ir::StorageId s) const { return resident(s) && at(s).offset != home(s); }
  void* address(ir::StorageId s) const { return pool_.address(s); }
  /// Where an op finds what it reads.
  const void* input_address(ir::StorageId s) const;
  void forget_adopted() { adopted_.clear(); }

  void acquire(ir::StorageId s);
  void release(ir::StorageId s);
  /// `s` gets the memory of `from`, with what it holds; until the next op has run, input_address(from) is
  /// there.
  void adopt(ir::StorageId s, ir::StorageId from);
  void swap_out(ir::StorageId s);
  void swap_in(ir::StorageId s);
  /// Returns at once if nothing is pending.
  void wait(ir::StorageId s);

  void* acquire_scratch(std::int64_t size_bytes);
  void release_scratch(std::int64_t size_bytes);

  /// From now on the graph's tensors are those of another step, and what gets memory is put at `offsets`, one
  /// after the other (empty: where the pool likes), which must outlive the step.
  void begin_step(std::span<const std::int64_t> offsets) {
    ++step_;
    offsets_ = offsets;
  }
  /// From now on what gets memory is put where it is between steps.
  void end_step() { offsets_ = {}; }
  /// The memory holds this tensor of the present step now. What the tier has is old, unless it is the same:
  /// an op that runs again makes what was written before.
  void changed(ir::StorageId s, ir::TensorId tensor) {
    State& state = at(s);
    state.in_memory = {step_, tensor};
    state.on_tier = state.written == state.in_memory;
  }
  /// The same outside of steps, where it is a value of its own.
  void changed(ir::StorageId s) {
    ++step_;
    changed(s, ir::kNone);
  }

  /// Counts from now on into `stats` (and `trace`, which may be null); see StepStats.
  void count_into(StepStats* stats, Trace* trace);
  /// Looks which transfers are complete by now, so that a trace knows it before they are waited for.
  void look_for_complete();

 private:
  struct Value {
    std::uint32_t step = 0;
    ir::TensorId tensor = ir::kNone;
    bool operator==(const Value&) const = default;
  };
  /// There is one for each storage, so what only some have is elsewhere.
  struct State {
    Value in_memory, written;         ///< written: what the tier has, be it old
    std::int64_t offset = kAnywhere;  ///< where it was given memory last
    bool on_tier = false;
    plan::Transfer pending = plan::Transfer::none;
  };
  static_assert(sizeof(State) <= 32);
  /// A transfer that is under way.
  struct Moving {
    Ticket ticket = 0;
    double since_seconds = 0;
    bool traced = false;  ///< its event was written already
  };
  const State& at(ir::StorageId s) const { return states_[static_cast<std::size_t>(s)]; }
  State& at(ir::StorageId s) { return states_[static_cast<std::size_t>(s)]; }
  int extent(ir::StorageId s) const;
  std::int64_t home(int slot) const {
    return homes_.empty() ? kAnywhere : homes_[static_cast<std::size_t>(slot)];
  }
  std::int64_t next_offset(int slot);
  void note_peak();
  void trace_transfer(ir::StorageId s, Moving& moving, double end_seconds);

  Pool& pool_;
  const fit::StorageMap& map_;
  Tier* tier_;
  LongVector<State> states_;
  LongVector<std::int64_t> homes_;
  std::span<const std::int64_t> offsets_;  ///< of what gets memory next
  std::uint32_t step_ = 1;
  StepStats idle_stats_;
  StepStats* stats_ = &idle_stats_;
  Trace* trace_ = nullptr;
  LongVector<plan::Overwrite> adopted_;
  std::unordered_map<ir::StorageId, Moving> moving_;
  LongVector<ir::StorageId> looked_at_;  ///< that look_for_complete() has to look at
};

}  // namespace penstock::run
