#pragma once

#include <cstdint>
#include <vector>

#include "memory/address_range.h"
#include "memory/page_placement.h"
#include "memory/pool.h"

namespace penstock {

/// Every slot has one virtual address range for life; physical memory comes and goes beneath it, moved with
/// mremap as PagePlacement says. (Each move interrupts all cores that run the process, some 20 us.) Where a
/// slot has no memory it is inaccessible: touching it is a segmentation fault. With poison on, this holds for
/// all of a slot as soon as it is released.
class VirtualPool final : public Pool {
 public:
  /// Throws UserError when the small slots alone exceed the capacity or the kernel does not give the memory.
  VirtualPool(const std::vector<std::int64_t>& slot_bytes, std::int64_t capacity_bytes,
              bool poison = kPoisonByDefault)
      : VirtualPool(slot_bytes, VirtualPoolRule(capacity_bytes), capacity_bytes, poison) {}
  /// A pool smaller than the one that `rule` was made for: plans made with that rule need not be made again.
  VirtualPool(const std::vector<std::int64_t>& slot_bytes, const VirtualPoolRule& rule,
              std::int64_t capacity_bytes, bool poison = kPoisonByDefault);

  /// `offset` is kAnywhere: this pool places slots itself.
  void* acquire(int slot, std::int64_t offset = kAnywhere) override;
  void release(int slot) override;
  void hand_over(int from, int to) override;
  void* address(int slot) const override;
  bool held(int slot) const override;
  bool fits(int slot, std::int64_t offset = kAnywhere) const override;
  bool swappable(int slot) const override;
  std::int64_t capacity_bytes() const override { return capacity_bytes_; }
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
    std::byte* address = nullptr;
  };
  const Slot& checked(int slot) const;
  void make(const PagePlacement::Moves& moves);
  void move(std::byte* from, std::byte* to, std::int64_t size_bytes);
  void copy(std::byte* from, std::byte* to, std::int64_t size_bytes);
  void close(std::byte* address, std::int64_t size_bytes);
  std::byte* at(std::int64_t offset) const;

  VirtualPoolRule rule_;
  std::int64_t capacity_bytes_;
  bool poison_;
  PagePlacement placement_;
  std::vector<Slot> slots_;
  AddressRange fixed_;  // small slots, always resident
  AddressRange home_;   // where memory is at first
  AddressRange space_;  // the other slots
  std::int64_t mapped_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
  std::int64_t asked_bytes_ = 0;
  std::int64_t peak_lost_bytes_ = 0;
  std::int64_t moves_ = 0;
};

}  // namespace penstock
