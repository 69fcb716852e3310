#pragma once

#include <cstdint>

#include "base/long_vector.h"
#include "memory/address_range.h"
#include "memory/held_ranges.h"
#include "memory/page_placement.h"
#include "memory/pool.h"

namespace penstock {

/// How much a VirtualPool has of what.
struct VirtualPoolSize {
  std::int64_t small_bytes = 0;    ///< memory that small slots share; it stays where it is
  std::int64_t memory_bytes = 0;   ///< memory that moves, in whole grains
  std::int64_t address_bytes = 0;  ///< addresses beneath which it moves, no fewer
};

/// There are more addresses than memory. The user says at which of them a slot is, another range at each stay
/// if need be, and physical memory is brought beneath it, moved with mremap as PagePlacement says. (Each move
/// interrupts all cores that run the process, some 20 us.) Page tables grow with the addresses, so slots that
/// are there at different times had better share them. Where there is no memory touching is a segmentation
/// fault; with poison on, this holds for all of a slot as soon as it is released. Small slots lie in memory
/// that never moves.
///
/// A pool that is made without VirtualPoolSize has addresses for all slots side by side: each is at a place
/// of its own, and offsets are kAnywhere.
class VirtualPool final : public Pool {
 public:
  /// Throws UserError when the small slots alone exceed the capacity or the kernel does not give the memory.
  VirtualPool(const LongVector<std::int64_t>& slot_bytes, std::int64_t capacity_bytes,
              bool poison = kPoisonByDefault)
      : VirtualPool(slot_bytes, VirtualPoolRule(capacity_bytes), capacity_bytes, poison) {}
  /// A pool smaller than the one that `rule` was made for: plans made with that rule need not be made again.
  VirtualPool(const LongVector<std::int64_t>& slot_bytes, const VirtualPoolRule& rule,
              std::int64_t capacity_bytes, bool poison = kPoisonByDefault);
  /// Offsets are told: of a small slot in the memory that these share, of another one among the addresses.
  VirtualPool(const LongVector<std::int64_t>& slot_bytes, const VirtualPoolRule& rule,
              const VirtualPoolSize& size, bool poison = kPoisonByDefault);

  void* acquire(int slot, std::int64_t offset = kAnywhere) override;
  void release(int slot) override;
  void hand_over(int from, int to) override;
  void* address(int slot) const override;
  bool held(int slot) const override;
  bool fits(int slot, std::int64_t offset = kAnywhere) const override;
  bool swappable(int slot) const override;
  std::int64_t capacity_bytes() const override { return small_bytes_ + placement_.memory_bytes(); }
  std::int64_t mapped_bytes() const override { return mapped_bytes_; }
  std::int64_t peak_bytes() const override { return peak_bytes_; }
  std::int64_t asked_bytes() const override { return asked_bytes_; }
  std::int64_t peak_lost_bytes() const override { return peak_lost_bytes_; }
  const VirtualPoolRule& rule() const { return rule_; }
  /// Calls of mremap so far, or copies in their place.
  std::int64_t moves() const { return moves_; }

  /// Whether the kernel moves pages and keeps the range they leave (MREMAP_DONTUNMAP). Where it does not,
  /// bytes are copied instead, which is slower and gives the same.
  static bool pages_can_move();
  /// For tests.
  static void set_pages_can_move(bool can);

 private:
  struct Slot {
    std::int64_t size_bytes = 0;
    std::int64_t offset = kAnywhere;  // while it is held
  };
  Slot& checked(int slot);
  const Slot& checked(int slot) const;
  std::int64_t place(int slot, std::int64_t offset) const;
  std::byte* at(const Slot& slot) const;
  void protect(const Slot& slot, int protection);
  void take_small(std::int64_t offset, std::int64_t size_bytes);
  void make(const PagePlacement::Moves& moves);
  void move(std::byte* from, std::byte* to, std::int64_t size_bytes);
  void copy(std::byte* from, std::byte* to, std::int64_t size_bytes);
  void close(std::byte* address, std::int64_t size_bytes);

  VirtualPoolRule rule_;
  std::int64_t small_bytes_;
  bool poison_;
  PagePlacement placement_;
  LongVector<Slot> slots_;
  LongVector<std::int64_t> own_offsets_;  // by slot; empty where offsets are told
  HeldRanges small_held_;
  AddressRange small_;
  AddressRange space_;
  std::int64_t mapped_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
  std::int64_t asked_bytes_ = 0;
  std::int64_t peak_lost_bytes_ = 0;
  std::int64_t moves_ = 0;
};

}  // namespace penstock
