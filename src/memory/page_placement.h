#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/frame_allocator.h"
#include "memory/held_ranges.h"

namespace penstock {

/// How a VirtualPool rounds, as a pure function, so that a planner can count exactly.
class VirtualPoolRule {
 public:
  /// For a pool of so much memory.
  explicit VirtualPoolRule(std::int64_t capacity_bytes);

  /// The unit in which memory is handed out: 4 KiB for small pools, 64 KiB at 1 GiB, at most capacity / 8192.
  std::int64_t grain_bytes() const { return grain_bytes_; }
  /// Small slots (up to a quarter of the grain) share pages, which stay where they are.
  bool is_small(std::int64_t size_bytes) const { return size_bytes <= grain_bytes_ / 4; }
  /// What all small slots take together, each with bytes of its own.
  std::int64_t fixed_bytes(std::span<const std::int64_t> slot_bytes) const;
  /// What a slot takes of the pages that move, while it is held: 0 for small ones.
  std::int64_t footprint_bytes(std::int64_t size_bytes) const;

 private:
  std::int64_t grain_bytes_;
};

/// Which addresses of a VirtualPool have memory beneath them, and what has to move when a range of them gets
/// some. Bookkeeping only: it says the moves and makes none, so a plan's moves can be counted without memory.
///
/// Addresses are offsets, and there are more of them than memory, which at first lies beneath the lowest.
/// Memory that is free stays where it was used last until another range needs it, and goes there at once:
/// a range that is acquired again soon, by whomever, costs nothing. Whole frames of 2 MiB go to whole frames
/// while there are any, so that huge pages stay huge. Any free grain may serve any range, so fragmentation
/// costs moves but never makes an acquire fail.
class PagePlacement {
 public:
  struct Move {
    std::int64_t from = 0;  ///< offsets
    std::int64_t to = 0;
    std::int64_t size_bytes = 0;
    bool operator==(const Move&) const = default;
  };
  using Moves = std::vector<Move>;

  /// All in whole grains. There are at least as many addresses as there is memory.
  PagePlacement(std::int64_t grain_bytes, std::int64_t memory_bytes, std::int64_t address_bytes);

  /// Gives the range memory, in whole grains. Returns the moves that bring it, valid until the next call.
  /// InternalError when a part of the range is held, or is no address, or there is not enough memory.
  const Moves& acquire(std::int64_t offset, std::int64_t size_bytes);
  /// Takes back what was acquired at this offset; InternalError when nothing was. It stays there for now.
  void release(std::int64_t offset);
  /// Whether acquire() would succeed.
  bool fits(std::int64_t offset, std::int64_t size_bytes) const;

  std::int64_t memory_bytes() const { return memory_bytes_; }
  std::int64_t address_bytes() const { return static_cast<std::int64_t>(has_memory_.size()) * grain_bytes_; }

 private:
  /// The first unit from `unit` on, up to `end`, whose memory is or is not there.
  int find(int unit, int end, bool has_memory) const;
  void fill(int from, int to);

  std::int64_t grain_bytes_;
  std::int64_t memory_bytes_;
  FrameAllocator units_;          // addresses with memory that nobody holds
  std::vector<bool> has_memory_;  // by unit of addresses
  HeldRanges held_;
  Moves moves_;
};

}  // namespace penstock
