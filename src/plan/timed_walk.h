#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <utility>

#include "base/long_vector.h"
#include "plan/link_lane.h"
#include "plan/memory_curve.h"
#include "plan/plan_builder.h"
#include "plan/profile.h"
#include "plan/swap_set.h"
#include "plan/tier_lanes.h"

namespace penstock::plan {

/// What a storage of the state does at the boundary.
enum class AtBoundary : std::uint8_t {
  away,        ///< is on the tier
  kept,        ///< stays in memory
  prefetched,  ///< has come, or is coming, from the tier for the next step
  retiring,    ///< has memory until its copy-out, which is under way, is complete
};

/// When a value that will be swapped out starts to be written.
enum class WriteStart : std::uint8_t {
  at_gap,   ///< once its memory is not needed any more
  at_birth  ///< once it has been made, though others read it still
};

/// Makes a plan of a swap set: copy-outs start when a gap begins or when the value is made, copy-ins as early
/// as memory lets them, in the order of need, both timed by the profile. Memory never runs out on the way: a
/// copy-in starts only if it fits until its use.
class TimedWalk {
 public:
  /// `boundary`: by storage, for a step that begins and ends there; empty: begin with all swapped state away
  /// and end wherever the walk gets. Step, profile and swaps must outlive it.
  TimedWalk(const Step& step, const Profile& profile, const SwapSet& swaps,
            LongVector<AtBoundary> boundary = {}, WriteStart write_start = WriteStart::at_gap);

  /// Call it once. False if what the set leaves in memory exceeds the budget.
  bool walk();
  /// What the state does at the end of the walk.
  LongVector<AtBoundary> end() const;
  Plan finish(const char* policy) { return builder_.finish(policy); }

 private:
  bool closed() const { return !boundary_.empty(); }
  AtBoundary at_boundary(ir::StorageId s) const;
  Boundary start() const;
  std::int64_t footprint(ir::StorageId s) const { return problem_.storage(s).footprint_bytes; }
  bool add_memory();
  void begin();
  void bring(Position position);
  void prefetch(Position position);
  bool try_prefetch(Position position, Position deadline, ir::StorageId s);
  void run(Position position);
  void leave(const Use& use);
  bool is_swapped_later(const StorageUses& storage, ir::StorageId s, std::size_t access) const;
  void retire(ir::StorageId s);
  void write(ir::StorageId s);
  void recall(ir::StorageId s, bool may_cancel);
  void finish_boundary();
  /// Releases retired storages: those that are complete, and if `may_wait` the oldest others, until so much
  /// is free.
  bool make_room(std::int64_t bytes, bool may_wait);
  void release_retired(std::size_t index);

  const Step& step_;
  const Problem& problem_;
  const Profile& profile_;
  const SwapSet& swaps_;
  LongVector<AtBoundary> boundary_;
  LongVector<ir::StorageId> state_;
  WriteStart write_start_;
  Position positions_;
  PlanBuilder builder_;
  TierLanes lanes_;
  LinkLane link_;
  MemoryCurve memory_;
  double now_seconds_ = 0;
  std::set<std::pair<Position, ir::StorageId>> demands_;  ///< what is to come in, by deadline
  std::deque<ir::StorageId> retired_;                     ///< oldest first
  LongVector<std::uint8_t> is_retired_;
  LongVector<std::uint32_t> next_access_;
};

}  // namespace penstock::plan
