#include "memory/virtual_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"

namespace penstock {
namespace {

constexpr std::int64_t kSmallestGrain = 4 * kKiB;
constexpr std::int64_t kHugePage = 2 * kMiB;
constexpr std::int64_t kCacheLine = 64;
/// Each unit may need one mapping where it is, one where it is not, and one for the gap behind it; Linux
/// allows a process 65,530 mappings unless told otherwise.
constexpr std::int64_t kMaxUnits = 16384;

int unit_count(const VirtualPoolRule& rule, std::int64_t capacity_bytes, std::int64_t fixed_bytes) {
  return static_cast<int>(std::max<std::int64_t>(0, capacity_bytes - fixed_bytes) / rule.grain_bytes());
}

}  // namespace

VirtualPoolRule::VirtualPoolRule(std::int64_t capacity_bytes) : grain_bytes_(kSmallestGrain) {
  while (capacity_bytes / grain_bytes_ > kMaxUnits) grain_bytes_ *= 2;
}

std::int64_t VirtualPoolRule::fixed_bytes(std::span<const std::int64_t> slot_bytes) const {
  std::int64_t total = 0;
  for (const std::int64_t size_bytes : slot_bytes) {
    if (is_small(size_bytes)) total += round_up(std::max<std::int64_t>(size_bytes, 1), kCacheLine);
  }
  return round_up(total, kSmallestGrain);
}

std::int64_t VirtualPoolRule::footprint_bytes(std::int64_t size_bytes) const {
  return is_small(size_bytes) ? 0 : round_up(size_bytes, grain_bytes_);
}

VirtualPool::VirtualPool(const std::vector<std::int64_t>& slot_bytes, const VirtualPoolRule& rule,
                         std::int64_t capacity_bytes, bool poison)
    : rule_(rule),
      capacity_bytes_(capacity_bytes),
      poison_(poison),
      units_(unit_count(rule_, capacity_bytes, rule_.fixed_bytes(slot_bytes)),
             static_cast<int>(std::max<std::int64_t>(1, kHugePage / rule_.grain_bytes()))) {
  const std::int64_t fixed_bytes = rule_.fixed_bytes(slot_bytes);
  if (fixed_bytes > capacity_bytes) {
    throw UserError(fmt::format(
        "the pool of {} cannot hold even the small tensors, which take {}; give a larger --memory",
        format_bytes(capacity_bytes), format_bytes(fixed_bytes)));
  }
  require_available(capacity_bytes, "the memory pool");
  for (const std::int64_t size_bytes : slot_bytes) {
    require(size_bytes >= 0, "a slot's size is not negative");
    slots_.push_back({size_bytes, rule_.footprint_bytes(size_bytes), nullptr, false, 0, {}});
  }
  lay_out_slots();
  mapped_bytes_ = peak_bytes_ = fixed_bytes;
  fixed_ = AddressRange(fixed_bytes, AddressRange::Access::read_write);
  parking_ = AddressRange(units_.free_units() * rule_.grain_bytes(), AddressRange::Access::read_write);
  fixed_.populate();
  parking_.populate();
  std::int64_t offset = 0;
  for (Slot& slot : slots_) {
    if (slot.footprint_bytes > 0) continue;
    slot.address = fixed_.data() + offset;
    offset += round_up(std::max<std::int64_t>(slot.size_bytes, 1), kCacheLine);
  }
}

void VirtualPool::lay_out_slots() {
  // A slot with a body of whole frames starts on a frame, so that huge pages can be mapped as such.
  std::vector<std::int64_t> offsets(slots_.size());
  std::int64_t end = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].footprint_bytes == 0) continue;
    if (slots_[i].footprint_bytes >= kHugePage) end = round_up(end, kHugePage);
    offsets[i] = end;
    end += slots_[i].footprint_bytes;
  }
  space_ = AddressRange(end, AddressRange::Access::none);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].footprint_bytes > 0) slots_[i].address = space_.data() + offsets[i];
  }
}

VirtualPool::Slot& VirtualPool::checked(int slot) {
  require(slot >= 0 && static_cast<std::size_t>(slot) < slots_.size(), "no such slot");
  return slots_[static_cast<std::size_t>(slot)];
}

const VirtualPool::Slot& VirtualPool::checked(int slot) const {
  require(slot >= 0 && static_cast<std::size_t>(slot) < slots_.size(), "no such slot");
  return slots_[static_cast<std::size_t>(slot)];
}

void* VirtualPool::acquire(int slot) {
  Slot& taker = checked(slot);
  require(!taker.held, "the slot has memory already");
  if (taker.idle_since > 0) {
    forget_idle(taker);
  } else if (taker.footprint_bytes > 0 && !take_over(taker)) {
    take_parked(taker);
  }
  taker.held = true;
  mapped_bytes_ += taker.footprint_bytes;
  asked_bytes_ += taker.size_bytes;
  peak_bytes_ = std::max(peak_bytes_, mapped_bytes_);
  peak_lost_bytes_ = std::max(peak_lost_bytes_, mapped_bytes_ - asked_bytes_);
  return taker.address;
}

/// Takes the memory of the slot of the same size that was released last: it may still be in the caches.
bool VirtualPool::take_over(Slot& taker) {
  const auto found = idle_of_size_.find(taker.footprint_bytes);
  if (found == idle_of_size_.end()) return false;
  Slot& giver = *idle_.at(*found->second.rbegin());
  forget_idle(giver);
  move_all(giver, taker);
  return true;
}

void VirtualPool::move_all(Slot& giver, Slot& taker) {
  std::int64_t offset = 0;
  for (const UnitRun& run : giver.runs) {
    const std::int64_t run_bytes = run.count * rule_.grain_bytes();
    move_run(giver.address + offset, taker.address + offset, run_bytes);
    offset += run_bytes;
  }
  close(giver);
  taker.runs = std::move(giver.runs);
  giver.runs.clear();
}

void VirtualPool::hand_over(int from, int to) {
  Slot &giver = checked(from), &taker = checked(to);
  require(giver.held && !taker.held && giver.footprint_bytes == taker.footprint_bytes &&
              giver.footprint_bytes > 0,
          "the slot's memory cannot be handed over");
  if (taker.idle_since > 0) park(taker);
  move_all(giver, taker);
  giver.held = false;
  taker.held = true;
  asked_bytes_ += taker.size_bytes - giver.size_bytes;
  peak_lost_bytes_ = std::max(peak_lost_bytes_, mapped_bytes_ - asked_bytes_);
}

void VirtualPool::take_parked(Slot& taker) {
  const std::int64_t grain = rule_.grain_bytes();
  const auto needed = static_cast<int>(taker.footprint_bytes / grain);
  if (needed > units_.free_units() + idle_bytes_ / grain) {
    throw InternalError(fmt::format("a slot needs {} bytes, and {} of the pool's {} are free",
                                    taker.footprint_bytes, units_.free_units() * grain + idle_bytes_,
                                    capacity_bytes_));
  }
  while (needed > units_.free_units()) park(*idle_.begin()->second);
  taker.runs = units_.allocate(needed);
  std::byte* to = taker.address;
  for (const UnitRun& run : taker.runs) {
    move_run(parking_address(run.first), to, run.count * grain);
    to += run.count * grain;
  }
}

void VirtualPool::release(int slot) {
  Slot& giver = checked(slot);
  require(giver.held, "the slot has no memory to release");
  giver.held = false;
  mapped_bytes_ -= giver.footprint_bytes;
  asked_bytes_ -= giver.size_bytes;
  if (poison_) std::memset(giver.address, kPoisonByte, static_cast<std::size_t>(giver.size_bytes));
  if (giver.footprint_bytes == 0) return;
  giver.idle_since = ++releases_;
  idle_.emplace(giver.idle_since, &giver);
  idle_of_size_[giver.footprint_bytes].insert(giver.idle_since);
  idle_bytes_ += giver.footprint_bytes;
  if (poison_) park(giver);
}

void VirtualPool::forget_idle(Slot& slot) {
  idle_.erase(slot.idle_since);
  const auto same_size = idle_of_size_.find(slot.footprint_bytes);
  same_size->second.erase(slot.idle_since);
  if (same_size->second.empty()) idle_of_size_.erase(same_size);
  idle_bytes_ -= slot.footprint_bytes;
  slot.idle_since = 0;
}

void VirtualPool::park(Slot& giver) {
  forget_idle(giver);
  const std::int64_t grain = rule_.grain_bytes();
  std::byte* from = giver.address;
  for (const UnitRun& run : giver.runs) {
    move_run(from, parking_address(run.first), run.count * grain);
    from += run.count * grain;
  }
  close(giver);
  units_.release(giver.runs);
  giver.runs.clear();
}

/// What moves leave behind is empty but writable.
void VirtualPool::close(const Slot& slot) {
  void* closed = ::mmap(slot.address, static_cast<std::size_t>(slot.footprint_bytes), PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (closed == MAP_FAILED)
    throw RunError(fmt::format("cannot close a slot's range: {}", std::strerror(errno)));
}

void VirtualPool::move_run(std::byte* from, std::byte* to, std::int64_t size_bytes) {
  // DONTUNMAP leaves the old range reserved: nothing else in the process can be mapped there in the meantime.
  const auto size = static_cast<std::size_t>(size_bytes);
  void* moved = ::mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to);
  ++moves_;
  if (moved != MAP_FAILED) return;
  const int error = errno;
  // A run that is made of several mappings has to be moved in parts.
  if (error == EFAULT && size_bytes > rule_.grain_bytes()) {
    const std::int64_t half = round_up(size_bytes / 2, rule_.grain_bytes());
    move_run(from, to, half);
    move_run(from + half, to + half, size_bytes - half);
    return;
  }
  throw RunError(fmt::format("cannot move {} of pool memory: {}; try --pool packed", format_bytes(size_bytes),
                             std::strerror(error)));
}

void* VirtualPool::address(int slot) const {
  const Slot& found = checked(slot);
  require(found.held, "the slot has no memory");
  return found.address;
}

bool VirtualPool::held(int slot) const {
  return checked(slot).held;
}

bool VirtualPool::fits(int slot) const {
  const Slot& taker = checked(slot);
  return !taker.held && taker.footprint_bytes <= units_.free_units() * rule_.grain_bytes() + idle_bytes_;
}

bool VirtualPool::swappable(int slot) const {
  return checked(slot).footprint_bytes > 0;
}

}  // namespace penstock
