#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/frame_allocator.h"

namespace penstock {

/// How a VirtualPool of a given capacity rounds, as a pure function, so that a planner can count exactly.
/// The rule: fixed_bytes(all slots) + sum of footprint_bytes(held slots) <= capacity is enough for every
/// acquire to succeed, whatever the history.
class VirtualPoolRule {
 public:
  explicit VirtualPoolRule(std::int64_t capacity_bytes);

  /// The unit in which memory is handed out: 4 KiB for small pools, 64 KiB at 1 GiB, at most capacity / 8192.
  std::int64_t grain_bytes() const { return grain_bytes_; }
  /// Small slots (up to a quarter of the grain) share pages and are resident for the pool's whole life.
  bool is_small(std::int64_t size_bytes) const { return size_bytes <= grain_bytes_ / 4; }
  /// What all small slots take together, held or not.
  std::int64_t fixed_bytes(std::span<const std::int64_t> slot_bytes) const;
  /// What a slot takes while it is held, beyond fixed_bytes(): 0 for small ones.
  std::int64_t footprint_bytes(std::int64_t size_bytes) const;

 private:
  std::int64_t grain_bytes_;
};

/// Which physical memory lies beneath which slot of a VirtualPool, and what has to move when a slot gets
/// some. Bookkeeping only: it says the moves and makes none, so a plan's moves can be counted without memory.
///
/// Each slot has a range of offsets for life, and behind all of them each unit of memory has a home, where it
/// is at first. Memory that is free stays where it was used last until another slot needs it, and goes there
/// at once: what is acquired again soon costs nothing. The body of a slot (whole frames of 2 MiB) takes whole
/// frames while there are any, so that huge pages stay huge; its tail takes grains of broken frames. Any free
/// grain may serve any slot, so fragmentation costs moves but never makes an acquire fail.
class PagePlacement {
 public:
  struct Move {
    std::int64_t from = 0;  ///< offsets
    std::int64_t to = 0;
    std::int64_t size_bytes = 0;
    bool operator==(const Move&) const = default;
  };
  using Moves = std::vector<Move>;

  PagePlacement(std::span<const std::int64_t> slot_bytes, const VirtualPoolRule& rule,
                std::int64_t capacity_bytes);

  /// Gives the slot memory. Returns the moves that bring it, valid until the next call. InternalError when
  /// the slot has some already or there is not enough.
  const Moves& acquire(int slot);
  /// InternalError when the slot has none.
  void release(int slot);
  /// Gives slot `to`, which has none, the memory of slot `from`, which is as large.
  const Moves& hand_over(int from, int to);
  /// Takes what a released slot still has away from it.
  const Moves& send_home(int slot);

  bool held(int slot) const { return slots_[static_cast<std::size_t>(slot)].held; }
  bool fits(int slot) const;
  /// 0: a small slot, which has no range.
  std::int64_t footprint_bytes(int slot) const {
    return slots_[static_cast<std::size_t>(slot)].footprint_bytes;
  }
  std::int64_t offset(int slot) const { return slots_[static_cast<std::size_t>(slot)].offset; }
  /// Homes begin there.
  std::int64_t slots_end() const { return slots_end_; }
  std::int64_t unit_bytes() const { return static_cast<std::int64_t>(where_.size()) * grain_bytes_; }

 private:
  struct Slot {
    std::int64_t footprint_bytes = 0;
    std::int64_t offset = 0;
    bool held = false;
    std::vector<UnitRun> runs;  // its memory, in order; of a released slot, what it was
  };
  void lay_out_slots();
  void fill(Slot& taker);
  void fill_gap(const Slot& taker, int from, int to, std::vector<UnitRun>& runs);
  template <typename Visit>
  void for_each_left(const Slot& slot, const Visit& visit) const;
  void empty(Slot& slot);
  void bring(const UnitRun& run, std::int64_t to);
  std::int64_t home(int unit) const { return slots_end_ + unit * grain_bytes_; }

  std::int64_t grain_bytes_;
  std::vector<Slot> slots_;
  std::int64_t slots_end_ = 0;
  FrameAllocator units_;             // those that no slot holds
  std::vector<std::int64_t> where_;  // by unit
  Moves moves_;
};

}  // namespace penstock
