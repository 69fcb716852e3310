#pragma once

#include "base/long_vector.h"
#include "plan/droppable.h"
#include "plan/trials.h"

namespace penstock::plan {

/// Recomputing between checkpoints. All that it is given must outlive it.
class SegmentSearch {
 public:
  SegmentSearch(Trials& trials, const LongVector<Droppable>& droppable)
      : trials_(trials), droppable_(droppable) {}

  /// Drops what can be computed again between checkpoints: more or fewer checkpoints, more or less of what
  /// lies between, as long as more than `reserve` plans are left. `start`, or what is better.
  Trial drop_between_checkpoints(const Trial& start, int reserve);
  /// Changes the mind about gaps between the best checkpoints where the other choice looks cheaper at the
  /// trial's prices. Uses up the contest's plans; returns the best.
  Trial climb(Trial trial);

 private:
  LongVector<std::size_t> between_checkpoints(int segments) const;

  Trials& trials_;
  const LongVector<Droppable>& droppable_;
  LongVector<std::size_t> candidates_;  ///< of droppable_: between the checkpoints that were best
};

}  // namespace penstock::plan
