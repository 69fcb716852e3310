#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "memory/address_range.h"
#include "memory/frame_allocator.h"
#include "memory/pool.h"

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

/// Every slot has one virtual address range for life; physical memory comes and goes beneath it, moved with
/// mremap, in runs as long as possible. A released slot keeps its memory, idle, until another needs it: what
/// is acquired again soon costs nothing, a slot of the same size takes it over with one move, and otherwise
/// what is idle longest is parked first, in a range of its own. (Each move interrupts all cores that run the
/// process, some 10 us.) The body of a slot (whole frames of 2 MiB) takes whole frames while there are any,
/// so that huge pages stay huge; its tail takes grains of broken frames. Any free grain may serve any slot,
/// so fragmentation costs calls but never makes an acquire fail. A slot without memory is inaccessible:
/// touching it is a segmentation fault. With poison on, nothing stays idle, so that this holds for all
/// released slots.
class VirtualPool final : public Pool {
 public:
  /// Throws UserError when the small slots alone exceed the capacity or the kernel does not give the memory.
  VirtualPool(const std::vector<std::int64_t>& slot_bytes, std::int64_t capacity_bytes,
              bool poison = kPoisonByDefault)
      : VirtualPool(slot_bytes, VirtualPoolRule(capacity_bytes), capacity_bytes, poison) {}
  /// A pool smaller than the one that `rule` was made for: plans made with that rule need not be made again.
  VirtualPool(const std::vector<std::int64_t>& slot_bytes, const VirtualPoolRule& rule,
              std::int64_t capacity_bytes, bool poison = kPoisonByDefault);

  void* acquire(int slot) override;
  void release(int slot) override;
  void hand_over(int from, int to) override;
  void* address(int slot) const override;
  bool held(int slot) const override;
  bool fits(int slot) const override;
  bool swappable(int slot) const override;
  std::int64_t capacity_bytes() const override { return capacity_bytes_; }
  std::int64_t mapped_bytes() const override { return mapped_bytes_; }
  std::int64_t peak_bytes() const override { return peak_bytes_; }
  std::int64_t asked_bytes() const override { return asked_bytes_; }
  std::int64_t peak_lost_bytes() const override { return peak_lost_bytes_; }
  const VirtualPoolRule& rule() const { return rule_; }
  /// Calls of mremap so far.
  std::int64_t moves() const { return moves_; }

 private:
  struct Slot {
    std::int64_t size_bytes = 0;
    std::int64_t footprint_bytes = 0;  // 0: in fixed_
    std::byte* address = nullptr;
    bool held = false;
    std::uint64_t idle_since = 0;  // by releases_; 0: not idle
    std::vector<UnitRun> runs;     // where its memory is at home in parking_
  };
  Slot& checked(int slot);
  const Slot& checked(int slot) const;
  void lay_out_slots();
  bool take_over(Slot& taker);
  void move_all(Slot& giver, Slot& taker);
  void take_parked(Slot& taker);
  void park(Slot& giver);
  void close(const Slot& slot);
  void forget_idle(Slot& slot);
  void move_run(std::byte* from, std::byte* to, std::int64_t size_bytes);
  std::byte* parking_address(int unit) const { return parking_.data() + unit * rule_.grain_bytes(); }

  VirtualPoolRule rule_;
  std::int64_t capacity_bytes_;
  bool poison_;
  std::vector<Slot> slots_;
  AddressRange fixed_;                                            // small slots, always resident
  AddressRange parking_;                                          // free units, each at its home
  AddressRange space_;                                            // the other slots
  FrameAllocator units_;                                          // what is parked
  std::map<std::uint64_t, Slot*> idle_;                           // longest first
  std::map<std::int64_t, std::set<std::uint64_t>> idle_of_size_;  // keys of idle_ by footprint
  std::int64_t idle_bytes_ = 0;
  std::uint64_t releases_ = 0;
  std::int64_t mapped_bytes_ = 0;
  std::int64_t peak_bytes_ = 0;
  std::int64_t asked_bytes_ = 0;
  std::int64_t peak_lost_bytes_ = 0;
  std::int64_t moves_ = 0;
};

}  // namespace penstock
