#pragma once

#include <cstdint>
#include <set>
#include <utility>

#include "base/long_vector.h"
#include "plan/plan_builder.h"
#include "plan/swap_set.h"

namespace penstock::plan {

/// SuperNeurons' tensor cache over a step: state stays in memory, all else from its first use on; where room
/// is needed, what was used least recently goes to the tier, and comes back before it is used again, one
/// expensive op ahead. While there is room, nothing moves.
class LruWalk {
 public:
  /// `expensive`: by position. `early`: gaps whose copy-outs start as soon as the gap begins, because room
  /// will be needed; null: none. All arguments must outlive it.
  LruWalk(const Step& step, const LongVector<std::uint8_t>& expensive, const SwapSet* early);

  /// Call it once, with the budget at least lru_bytes().
  void walk();
  /// The gaps that were spent on the tier.
  const SwapSet& evicted() const { return evicted_; }
  Plan finish(const char* policy) { return builder_.finish(policy); }

 private:
  void bring(Position position);
  void prefetch(Position position);
  void leave(Position position);
  void make_room(std::int64_t bytes);
  void evict(ir::StorageId s);
  void touch(ir::StorageId s, Position position);
  void forget(ir::StorageId s);
  bool is_cached(ir::StorageId s) const { return stamps_[static_cast<std::size_t>(s)] >= 0; }

  const Step& step_;
  const LongVector<std::uint8_t>& expensive_;
  const SwapSet* early_;
  SwapSet evicted_;
  PlanBuilder builder_;
  std::set<std::pair<Position, ir::StorageId>> cached_;  ///< what may go, by last use
  LongVector<Position> stamps_;                          ///< by storage: its key in cached_; -1: not in it
  LongVector<std::uint32_t> next_access_;
};

/// The smallest budget at which an LruWalk succeeds.
std::int64_t lru_bytes(const Step& step);

}  // namespace penstock::plan
