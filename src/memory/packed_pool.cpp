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

PackedPool::PackedPool(std::vector<std::int64_t> slot_bytes, std::vector<std::vector<std::int64_t>> offsets,
                       std::int64_t arena_bytes, std::int64_t capacity_bytes, bool poison)
    : arena_bytes_(arena_bytes), poison_(poison) {
  require(slot_bytes.size() == offsets.size(), "each slot needs its list of offsets");
  if (arena_bytes > capacity_bytes) {
    throw UserError(fmt::format("the packed pool needs {}, and the budget leaves {}; give a larger --memory",
                                format_bytes(arena_bytes), format_bytes(capacity_bytes)));
  }
  require_available(arena_bytes, "the memory pool");
  for (std::size_t i = 0; i < slot_bytes.size(); ++i) {
    for (const std::int64_t offset : offsets[i]) {
      require(offset >= 0 && offset + packed_bytes(slot_bytes[i]) <= arena_bytes,
              "an offset lies outside the arena");
      require(offset % packed_alignment(slot_bytes[i]) == 0, "an offset is not aligned");
    }
    slots_.push_back({slot_bytes[i], std::move(offsets[i]), 0, -1});
  }
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

void* PackedPool::acquire(int slot) {
  Slot& taker = checked(slot);
  require(taker.offset < 0, "the slot has memory already");
  require(!taker.offsets.empty(), "the slot was not packed");
  const std::int64_t offset = taker.offsets[taker.next];
  require(is_free(offset, taker.size_bytes), "a packed slot overlaps one that is held");
  held_.emplace(offset, offset + packed_bytes(taker.size_bytes));
  taker.offset = offset;
  taker.next = (taker.next + 1) % taker.offsets.size();
  asked_bytes_ += taker.size_bytes;
  const std::int64_t mapped = mapped_bytes();
  peak_bytes_ = std::max(peak_bytes_, mapped);
  peak_lost_bytes_ = std::max(peak_lost_bytes_, mapped - asked_bytes_);
  return arena_.data() + offset;
}

void PackedPool::release(int slot) {
  Slot& giver = checked(slot);
  require(giver.offset >= 0, "the slot has no memory to release");
  if (poison_)
    std::memset(arena_.data() + giver.offset, kPoisonByte, static_cast<std::size_t>(giver.size_bytes));
  held_.erase(giver.offset);
  giver.offset = -1;
  asked_bytes_ -= giver.size_bytes;
}

void* PackedPool::address(int slot) const {
  const Slot& found = checked(slot);
  require(found.offset >= 0, "the slot has no memory");
  return arena_.data() + found.offset;
}

bool PackedPool::held(int slot) const {
  return checked(slot).offset >= 0;
}

bool PackedPool::fits(int slot) const {
  const Slot& taker = checked(slot);
  return taker.offset < 0 && !taker.offsets.empty() && is_free(taker.offsets[taker.next], taker.size_bytes);
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
  return held_.empty() ? 0 : held_.rbegin()->second;
}

}  // namespace penstock
