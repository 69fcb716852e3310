#pragma once

#include <cstdint>

#include "base/long_vector.h"
#include "memory/address_range.h"
#include "memory/held_ranges.h"
#include "memory/pool.h"

namespace penstock {

/// One arena in which the user says where each slot goes (see pack.h), another place at each stay if need be.
/// Slots that never stay at the same time share bytes; overlap with a slot that is held is an InternalError.
class PackedPool final : public Pool {
 public:
  /// Throws UserError when the kernel does not give the memory.
  PackedPool(const LongVector<std::int64_t>& slot_bytes, std::int64_t arena_bytes,
             bool poison = kPoisonByDefault);

  void* acquire(int slot, std::int64_t offset) override;
  void release(int slot) override;
  /// The memory stays where it is: slot `to` is there from now on.
  void hand_over(int from, int to) override;
  void* address(int slot) const override;
  bool held(int slot) const override;
  bool fits(int slot, std::int64_t offset) const override;
  bool swappable(int slot) const override;
  /// The arena's size: all the memory this pool takes.
  std::int64_t capacity_bytes() const override { return arena_bytes_; }
  /// Up to the highest page in use: what lies below is taken, be it used or not.
  std::int64_t mapped_bytes() const override;
  std::int64_t peak_bytes() const override { return peak_bytes_; }
  std::int64_t asked_bytes() const override { return asked_bytes_; }
  /// What the gaps cost: the arena less the most that was asked for at a time.
  std::int64_t peak_lost_bytes() const override { return arena_bytes_ - peak_asked_bytes_; }

 private:
  struct Slot {
    std::int64_t size_bytes = 0;
    std::int64_t offset = kAnywhere;  // while it is held; else kAnywhere
    bool held() const { return offset != kAnywhere; }
  };
  Slot& checked(int slot);
  const Slot& checked(int slot) const;
  void check_place(std::int64_t offset, std::int64_t size_bytes) const;

  LongVector<Slot> slots_;
  std::int64_t arena_bytes_;
  bool poison_;
  AddressRange arena_;
  HeldRanges held_;
  std::int64_t asked_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
  std::int64_t peak_asked_bytes_ = 0;
};

}  // namespace penstock
