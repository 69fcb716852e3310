#pragma once

#include <cstdint>
#include <utility>

#include "base/long_vector.h"
#include "plan/memory_curve.h"
#include "plan/plan_builder.h"
#include "plan/retire_queue.h"

namespace penstock::plan {

/// One walk of the adaptive window over a step, with two pointers. The tail runs the ops; the head runs ahead
/// of it over future uses and brings in what they need while there is room. Positions are those of the ops;
/// behind the last lies either the boundary, as an op that uses all that must be resident there, or (to find
/// out what to have resident there) the next step.
///
/// A storage in memory is either needed by an op in the window, or in the retire queue. `ahead_` is the
/// memory that the ops of the window will find in use, the retired not counted: an array stays from where it
/// comes in until it dies or retires.
class WindowWalk {
 public:
  /// `end`: where the state must be at the end; null: wherever the walk leaves it. The problem and `end` must
  /// outlive it.
  WindowWalk(const Problem& problem, std::int64_t window_bytes, const Boundary& start, const Boundary* end);

  /// `exact`: the transfers under way at the end must be those of `end` as well. Call it once.
  PlanBuilder walk(bool exact);

 private:
  struct Mark {
    std::int32_t in_window = 0;     ///< uses between tail and head
    bool ahead = false;             ///< will be in memory when the head's op runs
    std::uint32_t next_access = 0;  ///< index of its first access at or behind the tail
    std::uint32_t head_access = 0;  ///< ... at or behind the head
  };

  Mark& mark(ir::StorageId s) { return marks_[static_cast<std::size_t>(s)]; }
  std::int64_t footprint(ir::StorageId s) const { return problem_.storage(s).footprint_bytes; }
  Position last_position() const { return end_ != nullptr ? ops_ : 2 * ops_ - 1; }
  std::span<const Use> uses_at(Position position) const;
  std::int64_t scratch_at(Position position) const;
  bool counts(Position position, const Use& use) const;
  bool is_used_at(Position position, ir::StorageId s) const;
  bool value_needed_after(ir::StorageId s, std::uint32_t access) const;

  void retire_start(const Boundary& start);
  void include(bool at_tail);
  void retreat_head();
  void advance_head();
  bool make_room_for_head();
  void ensure();
  void leave();
  void discard(ir::StorageId s);
  void finish(bool exact);

  const Problem& problem_;
  std::int64_t window_limit_bytes_;
  Position ops_;
  const Boundary* end_;
  LongVector<Use> boundary_uses_;
  PlanBuilder builder_;
  RetireQueue retired_;
  LongVector<Mark> marks_;
  MemoryCurve ahead_;
  LongVector<std::pair<Position, ir::StorageId>> reserved_;  ///< room kept from a position on; ascending
  Position tail_ = 0, head_ = 0;
  Position boundary_next_try_ = 0;  ///< the tail from which the head tries to pass the boundary again
  std::int64_t window_bytes_ = 0;   ///< of the storages that the window uses
};

}  // namespace penstock::plan
