#include "memory/packed_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "memory/pack.h"

namespace penstock {

PackedPool::PackedPool(const std::vector<std::int64_t>& slot_bytes, const std::vector<std::int64_t>& offsets,
                       std::int64_t arena_bytes, std::int64_t capacity_bytes, bool poison)
    : arena_bytes_(arena_bytes), poison_(poison) {
  if (arena_bytes > capacity_bytes) {
    throw UserError(fmt::format("the packed pool needs {}, and the budget leaves {}; give a larger --memory",
                                format_bytes(arena_bytes), format_bytes(capacity_bytes)));
  }
  require_available(arena_bytes, "the memory pool");
  for (const std::int64_t size_bytes : slot_bytes) slots_.push_back({size_bytes, -1, -1, false});
  set_homes(offsets);
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

void PackedPool::set_homes(const std::vector<std::int64_t>& offsets) {
  require(slots_.size() == offsets.size(), "each slot needs an offset");
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (offsets[i] >= 0) check_place(offsets[i], slots_[i].size_bytes);
    require(!slots_[i].held || slots_[i].offset == offsets[i], "a slot that is held would move");
    slots_[i].home = offsets[i];
  }
}

void PackedPool::follow(std::span<const std::int64_t> places) {
  places_ = places;
}

void* PackedPool::acquire(int slot) {
  Slot& taker = checked(slot);
  require(!taker.held, "the slot has memory already");
  taker.offset = taker.home;
  if (!places_.empty()) {
    taker.offset = places_.front();
    places_ = places_.subspan(1);
    check_place(taker.offset, taker.size_bytes);
  }
  require(taker.offset >= 0, "the slot was not packed");
  require(is_free(taker.offset, taker.size_bytes), "a packed slot overlaps one that is held");
  held_.emplace(taker.offset, taker.offset + packed_bytes(taker.size_bytes));
  taker.held = true;
  asked_bytes_ += taker.size_bytes;
  peak_asked_bytes_ = std::max(peak_asked_bytes_, asked_bytes_);
  peak_bytes_ = std::max(peak_bytes_, mapped_bytes());
  return arena_.data() + taker.offset;
}

void PackedPool::release(int slot) {
  Slot& giver = checked(slot);
  require(giver.held, "the slot has no memory to release");
  if (poison_)
    std::memset(arena_.data() + giver.offset, kPoisonByte, static_cast<std::size_t>(giver.size_bytes));
  held_.erase(giver.offset);
  giver.held = false;
  asked_bytes_ -= giver.size_bytes;
}

void PackedPool::hand_over(int from, int to) {
  (void)from, (void)to;
  throw InternalError("a packed pool does not move memory");
}

void* PackedPool::address(int slot) const {
  const Slot& found = checked(slot);
  require(found.held, "the slot has no memory");
  return arena_.data() + found.offset;
}

bool PackedPool::held(int slot) const {
  return checked(slot).held;
}

bool PackedPool::fits(int slot) const {
  const Slot& taker = checked(slot);
  return !taker.held && taker.home >= 0 && is_free(taker.home, taker.size_bytes);
}

bool PackedPool::is_free(std::int64_t offset, std::int64_t size_bytes) const {
  const auto next = held_.lower_bound(offset);
  return (next == held_.end() || offset + packed_bytes(size_bytes) <= next->first) &&
         (next == held_.begin() || std::prev(next)->second <= offset);
}

bool PackedPool::swappable(int slot) const {
  return checked(slot).size_bytes >= 4 * kKiB;
}

std::int64_t PackedPool::mapped_bytes() const {
  return held_.empty() ? 0 : round_up(held_.rbegin()->second, kPackedPage);
}

}  // namespace penstock
