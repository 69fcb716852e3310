#include "memory/packed_pool.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/long_vector.h"
#include "memory/pack.h"

namespace penstock {

PackedPool::PackedPool(const LongVector<std::int64_t>& slot_bytes, std::int64_t arena_bytes, bool poison)
    : arena_bytes_(arena_bytes), poison_(poison) {
  require_available(arena_bytes, "the memory pool");
  for (const std::int64_t size_bytes : slot_bytes) slots_.push_back({size_bytes, kAnywhere});
  arena_ = AddressRange(arena_bytes, AddressRange::Access::read_write);
  arena_.populate();
}

PackedPool::Slot& PackedPool::checked(int slot) {
  require(slot >= 0 && static_cast<std::size_t>(slot) < slots_.size(), "no such slot");
  return slots_[static_cast<std::size_t>(slot)];
}

const PackedPool::Slot& PackedPool::checked(int slot) const {
  require(slot >= 0 && static_cast<std::size_t>(slot) < slots_.size(), "no such slot");
  return slots_[static_cast<std::size_t>(slot)];
}

void PackedPool::check_place(std::int64_t offset, std::int64_t size_bytes) const {
  require(offset >= 0 && offset + packed_bytes(size_bytes) <= arena_bytes_,
          "an offset lies outside the arena");
  require(offset % packed_alignment(size_bytes) == 0, "an offset is not aligned");
}

void* PackedPool::acquire(int slot, std::int64_t offset) {
  Slot& taker = checked(slot);
  require(!taker.held(), "the slot has memory already");
  check_place(offset, taker.size_bytes);
  require(held_.is_free(offset, packed_bytes(taker.size_bytes)), "a packed slot overlaps one that is held");
  held_.add(offset, packed_bytes(taker.size_bytes));
  taker.offset = offset;
  asked_bytes_ += taker.size_bytes;
  peak_asked_bytes_ = std::max(peak_asked_bytes_, asked_bytes_);
  peak_bytes_ = std::max(peak_bytes_, mapped_bytes());
  return arena_.data() + taker.offset;
}

void PackedPool::release(int slot) {
  Slot& giver = checked(slot);
  require(giver.held(), "the slot has no memory to release");
  if (poison_)
    std::memset(arena_.data() + giver.offset, kPoisonByte, static_cast<std::size_t>(giver.size_bytes));
  held_.remove(giver.offset);
  giver.offset = kAnywhere;
  asked_bytes_ -= giver.size_bytes;
}

void PackedPool::hand_over(int from, int to) {
  Slot& giver = checked(from);
  Slot& taker = checked(to);
  require(giver.held() && !taker.held(),
          "memory is handed over from a slot that has some to one that has none");
  require(packed_bytes(giver.size_bytes) == packed_bytes(taker.size_bytes),
          "memory is handed over between slots of one size");
  taker.offset = giver.offset;
  giver.offset = kAnywhere;
  asked_bytes_ += taker.size_bytes - giver.size_bytes;
  peak_asked_bytes_ = std::max(peak_asked_bytes_, asked_bytes_);
}

void* PackedPool::address(int slot) const {
  const Slot& found = checked(slot);
  require(found.held(), "the slot has no memory");
  return arena_.data() + found.offset;
}

bool PackedPool::held(int slot) const {
  return checked(slot).held();
}

bool PackedPool::fits(int slot, std::int64_t offset) const {
  const Slot& taker = checked(slot);
  return !taker.held() && offset >= 0 && held_.is_free(offset, packed_bytes(taker.size_bytes));
}

bool PackedPool::swappable(int slot) const {
  return checked(slot).size_bytes >= 4 * kKiB;
}

std::int64_t PackedPool::mapped_bytes() const {
  return round_up(held_.end(), kPackedPage);
}

}  // namespace penstock
