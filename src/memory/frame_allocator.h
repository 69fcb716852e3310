#pragma once

#include <vector>

#include "memory/run_set.h"

namespace penstock {

/// Appends the run, to the last one where they are adjacent.
void append_run(std::vector<UnitRun>& runs, const UnitRun& run);

/// Hands out the units of a pool. A frame is a fixed number of consecutive units (one huge page). Whole
/// frames go to the bodies of large requests; tails, and small requests, take from frames that are broken
/// already. When no whole frame is left any free units will do, so a request succeeds whenever there are
/// enough free units. Invariant: `frames_` holds exactly the frames whose units are all free, `fragments_`
/// all other free units.
class FrameAllocator {
 public:
  FrameAllocator(int units, int units_per_frame) : FrameAllocator(units, units_per_frame, units) {}
  /// Of which only the first so many are free: the others are there once they are released.
  FrameAllocator(int units, int units_per_frame, int free_units);

  int free_units() const { return frames_.units() * units_per_frame_ + fragments_.units(); }
  /// As few runs as possible, `units` in all, in the order in which they are to be mapped. The whole frames
  /// come first. InternalError when there are not enough free units.
  std::vector<UnitRun> allocate(int units);
  /// Takes just these units, which are free.
  void take(const UnitRun& run);
  void release(const std::vector<UnitRun>& runs);
  int units_per_frame() const { return units_per_frame_; }

 private:
  void take_frames(int count, std::vector<UnitRun>& into);
  void take_fragments(int count, std::vector<UnitRun>& into);
  void break_frame(int frame);
  bool few_fragments_hold(int count) const;

  int units_per_frame_;
  RunSet frames_;     // in frames
  RunSet fragments_;  // in units
  std::vector<int> free_in_frame_;
  int whole_frames_;  // a rest at the end that is no whole frame is always a fragment
};

}  // namespace penstock
