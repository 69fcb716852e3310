#pragma once

#include <cstdint>

namespace penstock {

#ifdef NDEBUG
inline constexpr bool kPoisonByDefault = false;
#else
inline constexpr bool kPoisonByDefault = true;
#endif

/// What fills released memory where poisoning is on: as float32 a NaN, as an index an absurd one.
inline constexpr unsigned char kPoisonByte = 0xFF;

/// The place of a slot in a pool that finds places by itself.
inline constexpr std::int64_t kAnywhere = -1;

/// Physical memory of fixed capacity, handed out to slots whose sizes are known from the start. A slot is one
/// storage of the plan. All memory is taken and touched by the constructor: acquire and release cause no page
/// fault. What a slot holds after acquire is undefined. Slots of 4 KiB and more start on a 4 KiB boundary and
/// may be read and written up to the next multiple of 4 KiB (swappable()); smaller ones are aligned to 64
/// bytes. Not thread safe: one thread (the executor's) acquires and releases; the memory itself may be used
/// by any thread.
class Pool {
 public:
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  virtual ~Pool() = default;

  /// Gives the slot memory and returns where. `offset`: where in the pool's arena, for a pool whose slots are
  /// placed by their user; kAnywhere for a pool that places them itself. InternalError when the slot has
  /// memory already, the place is taken or the plan exceeds the capacity.
  virtual void* acquire(int slot, std::int64_t offset) = 0;
  /// Takes it back. InternalError when the slot has none.
  virtual void release(int slot) = 0;
  /// Gives slot `to`, which has none, the memory of slot `from`, which is as large, with what it holds.
  virtual void hand_over(int from, int to) = 0;
  /// Where the slot's memory is. InternalError when it has none.
  virtual void* address(int slot) const = 0;
  virtual bool held(int slot) const = 0;
  /// Whether acquire(slot, offset) would succeed now.
  virtual bool fits(int slot, std::int64_t offset) const = 0;
  /// Whether the slot's memory is fit for tier I/O: whole 4 KiB pages of its own.
  virtual bool swappable(int slot) const = 0;

  virtual std::int64_t capacity_bytes() const = 0;
  /// Physical bytes that the held slots take now, rounding included, and the most there ever were.
  virtual std::int64_t mapped_bytes() const = 0;
  virtual std::int64_t peak_bytes() const = 0;
  /// Bytes that the held slots asked for; mapped_bytes() - asked_bytes() is lost to rounding or
  /// fragmentation.
  virtual std::int64_t asked_bytes() const = 0;
  /// The most bytes lost at any moment.
  virtual std::int64_t peak_lost_bytes() const = 0;
};

}  // namespace penstock
