#include "memory/virtual_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/long_vector.h"
#include "memory/units.h"

namespace penstock {
namespace {

/// Copied at a time where pages cannot be moved: so much is there twice for a moment.
constexpr std::int64_t kCopiedBytes = 256 * kKiB;

/// Tries it once: kernels before 5.7 and some sandboxes refuse.
bool try_to_move_pages() {
  const AddressRange range(8 * kKiB, AddressRange::Access::read_write);
  *range.data() = std::byte{1};
  void* moved = ::mremap(range.data(), 4 * kKiB, 4 * kKiB, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
                         range.data() + 4 * kKiB);
  return moved != MAP_FAILED && range.data()[4 * kKiB] == std::byte{1};
}

std::atomic<bool>& pages_move() {
  static std::atomic<bool> value{try_to_move_pages()};
  return value;
}

/// What a small slot takes.
std::int64_t small_slot_bytes(std::int64_t size_bytes) {
  return round_up(std::max<std::int64_t>(size_bytes, 1), kCacheLine);
}

/// All slots side by side, small ones and others apart.
LongVector<std::int64_t> side_by_side(const LongVector<std::int64_t>& slot_bytes,
                                      const VirtualPoolRule& rule) {
  LongVector<std::int64_t> offsets;
  std::int64_t small_end = 0, end = 0;
  for (const std::int64_t size_bytes : slot_bytes) {
    if (rule.is_small(size_bytes)) {
      offsets.push_back(small_end);
      small_end += small_slot_bytes(size_bytes);
      continue;
    }
    // A slot with a body of whole frames starts on a frame, so that huge pages can be mapped as such.
    if (rule.footprint_bytes(size_bytes) >= kHugePage) end = round_up(end, kHugePage);
    offsets.push_back(end);
    end += rule.footprint_bytes(size_bytes);
  }
  return offsets;
}

VirtualPoolSize size_side_by_side(const LongVector<std::int64_t>& slot_bytes, const VirtualPoolRule& rule,
                                  std::int64_t capacity_bytes) {
  VirtualPoolSize size;
  size.small_bytes = rule.fixed_bytes(slot_bytes);
  if (size.small_bytes > capacity_bytes) {
    throw UserError(
        fmt::format("the pool of {} cannot hold even the small tensors, which take {}; give more memory",
                    format_bytes(capacity_bytes), format_bytes(size.small_bytes)));
  }
  size.memory_bytes = (capacity_bytes - size.small_bytes) / rule.grain_bytes() * rule.grain_bytes();
  size.address_bytes = size.memory_bytes;
  const LongVector<std::int64_t> offsets = side_by_side(slot_bytes, rule);
  for (std::size_t i = 0; i < slot_bytes.size(); ++i)
    size.address_bytes = std::max(size.address_bytes, offsets[i] + rule.footprint_bytes(slot_bytes[i]));
  return size;
}

}  // namespace

bool VirtualPool::pages_can_move() {
  return pages_move();
}

void VirtualPool::set_pages_can_move(bool can) {
  pages_move() = can;
}

VirtualPool::VirtualPool(const LongVector<std::int64_t>& slot_bytes, const VirtualPoolRule& rule,
                         std::int64_t capacity_bytes, bool poison)
    : VirtualPool(slot_bytes, rule, size_side_by_side(slot_bytes, rule, capacity_bytes), poison) {
  own_offsets_ = side_by_side(slot_bytes, rule);
}

VirtualPool::VirtualPool(const LongVector<std::int64_t>& slot_bytes, const VirtualPoolRule& rule,
                         const VirtualPoolSize& size, bool poison)
    : rule_(rule),
      small_bytes_(size.small_bytes),
      poison_(poison),
      placement_(rule.grain_bytes(), size.memory_bytes, size.address_bytes) {
  require_available(size.small_bytes + size.memory_bytes, "the memory pool");
  for (const std::int64_t size_bytes : slot_bytes) {
    require(size_bytes >= 0, "a slot's size is not negative");
    slots_.push_back({size_bytes, kAnywhere});
  }
  mapped_bytes_ = peak_bytes_ = small_bytes_;
  small_ = AddressRange(small_bytes_, AddressRange::Access::read_write);
  small_.populate();
  space_ = AddressRange(size.address_bytes, AddressRange::Access::none);
  space_.populate(size.memory_bytes);
}

VirtualPool::Slot& VirtualPool::checked(int slot) {
  require(slot >= 0 && static_cast<std::size_t>(slot) < slots_.size(), "no such slot");
  return slots_[static_cast<std::size_t>(slot)];
}

const VirtualPool::Slot& VirtualPool::checked(int slot) const {
  require(slot >= 0 && static_cast<std::size_t>(slot) < slots_.size(), "no such slot");
  return slots_[static_cast<std::size_t>(slot)];
}

/// Where the slot goes.
std::int64_t VirtualPool::place(int slot, std::int64_t offset) const {
  if (own_offsets_.empty()) return offset;
  require(offset == kAnywhere, "this pool places its slots itself");
  return own_offsets_[static_cast<std::size_t>(slot)];
}

std::byte* VirtualPool::at(const Slot& slot) const {
  return (rule_.is_small(slot.size_bytes) ? small_ : space_).data() + slot.offset;
}

void VirtualPool::take_small(std::int64_t offset, std::int64_t size_bytes) {
  const std::int64_t taken_bytes = small_slot_bytes(size_bytes);
  require(offset >= 0 && offset % kCacheLine == 0 && offset + taken_bytes <= small_bytes_,
          "a small slot lies outside of the memory that these share");
  require(small_held_.is_free(offset, taken_bytes), "a small slot overlaps one that is held");
  small_held_.add(offset, taken_bytes);
}

void* VirtualPool::acquire(int slot, std::int64_t offset) {
  Slot& taker = checked(slot);
  require(taker.offset == kAnywhere, "the slot has memory already");
  const std::int64_t where = place(slot, offset);
  const std::int64_t footprint_bytes = rule_.footprint_bytes(taker.size_bytes);
  if (footprint_bytes > 0) {
    make(placement_.acquire(where, footprint_bytes));
  } else {
    take_small(where, taker.size_bytes);
  }
  taker.offset = where;
  if (poison_) protect(taker, PROT_READ | PROT_WRITE);
  mapped_bytes_ += footprint_bytes;
  asked_bytes_ += taker.size_bytes;
  peak_bytes_ = std::max(peak_bytes_, mapped_bytes_);
  peak_lost_bytes_ = std::max(peak_lost_bytes_, mapped_bytes_ - asked_bytes_);
  return at(taker);
}

void VirtualPool::release(int slot) {
  Slot& giver = checked(slot);
  require(giver.offset != kAnywhere, "the slot has no memory to release");
  if (poison_) {
    std::memset(at(giver), kPoisonByte, static_cast<std::size_t>(giver.size_bytes));
    protect(giver, PROT_NONE);
  }
  if (rule_.is_small(giver.size_bytes)) {
    small_held_.remove(giver.offset);
  } else {
    placement_.release(giver.offset);
  }
  giver.offset = kAnywhere;
  mapped_bytes_ -= rule_.footprint_bytes(giver.size_bytes);
  asked_bytes_ -= giver.size_bytes;
}

void VirtualPool::hand_over(int from, int to) {
  Slot &giver = checked(from), &taker = checked(to);
  const std::int64_t giver_bytes = rule_.footprint_bytes(giver.size_bytes);
  require(giver.offset != kAnywhere && taker.offset == kAnywhere &&
              giver_bytes == rule_.footprint_bytes(taker.size_bytes) &&
              (giver_bytes > 0 || small_slot_bytes(giver.size_bytes) == small_slot_bytes(taker.size_bytes)),
          "the slot's memory cannot be handed over");
  std::swap(giver.offset, taker.offset);
  // Places of their own are exchanged with it, as these are of one size.
  if (!own_offsets_.empty())
    std::swap(own_offsets_[static_cast<std::size_t>(from)], own_offsets_[static_cast<std::size_t>(to)]);
  asked_bytes_ += taker.size_bytes - giver.size_bytes;
  peak_lost_bytes_ = std::max(peak_lost_bytes_, mapped_bytes_ - asked_bytes_);
}

/// Small slots share pages with others and stay open.
void VirtualPool::protect(const Slot& slot, int protection) {
  const std::int64_t footprint_bytes = rule_.footprint_bytes(slot.size_bytes);
  if (footprint_bytes > 0 && ::mprotect(at(slot), static_cast<std::size_t>(footprint_bytes), protection) != 0)
    throw RunError(fmt::format("cannot protect a slot's memory: {}", std::strerror(errno)));
}

void VirtualPool::make(const PagePlacement::Moves& moves) {
  for (const PagePlacement::Move& each : moves) {
    move(space_.data() + each.from, space_.data() + each.to, each.size_bytes);
    close(space_.data() + each.from, each.size_bytes);
  }
}

void VirtualPool::copy(std::byte* from, std::byte* to, std::int64_t size_bytes) {
  ++moves_;
  for (std::int64_t done = 0; done < size_bytes; done += kCopiedBytes) {
    const auto size = static_cast<std::size_t>(std::min(kCopiedBytes, size_bytes - done));
    const bool copied = ::mprotect(from + done, size, PROT_READ | PROT_WRITE) == 0 &&
                        ::mprotect(to + done, size, PROT_READ | PROT_WRITE) == 0;
    if (copied) std::memcpy(to + done, from + done, size);
    if (!copied || ::madvise(from + done, size, MADV_DONTNEED) != 0) {
      throw RunError(fmt::format("cannot copy {} of pool memory: {}; try the packed pool",
                                 format_bytes(size_bytes), std::strerror(errno)));
    }
  }
}

void VirtualPool::move(std::byte* from, std::byte* to, std::int64_t size_bytes) {
  if (!pages_can_move()) return copy(from, to, size_bytes);
  // DONTUNMAP leaves the old range reserved: nothing else in the process can be mapped there in the meantime.
  const auto size = static_cast<std::size_t>(size_bytes);
  void* moved = ::mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to);
  ++moves_;
  if (moved != MAP_FAILED) return;
  const int error = errno;
  // A run that is made of several mappings has to be moved in parts.
  if (error == EFAULT && size_bytes > rule_.grain_bytes()) {
    const std::int64_t half = round_up(size_bytes / 2, rule_.grain_bytes());
    move(from, to, half);
    move(from + half, to + half, size_bytes - half);
    return;
  }
  throw RunError(fmt::format("cannot move {} of pool memory: {}; try the packed pool",
                             format_bytes(size_bytes), std::strerror(error)));
}

/// What a move leaves behind is empty but writable, and does not merge with its neighbours.
void VirtualPool::close(std::byte* address, std::int64_t size_bytes) {
  void* closed = ::mmap(address, static_cast<std::size_t>(size_bytes), PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (closed == MAP_FAILED)
    throw RunError(fmt::format("cannot close a slot's range: {}", std::strerror(errno)));
}

void* VirtualPool::address(int slot) const {
  const Slot& found = checked(slot);
  require(found.offset != kAnywhere, "the slot has no memory");
  return at(found);
}

bool VirtualPool::held(int slot) const {
  return checked(slot).offset != kAnywhere;
}

bool VirtualPool::fits(int slot, std::int64_t offset) const {
  const Slot& taker = checked(slot);
  const std::int64_t where = place(slot, offset);
  if (taker.offset != kAnywhere) return false;
  if (!rule_.is_small(taker.size_bytes))
    return placement_.fits(where, rule_.footprint_bytes(taker.size_bytes));
  return where >= 0 && small_held_.is_free(where, small_slot_bytes(taker.size_bytes));
}

bool VirtualPool::swappable(int slot) const {
  return !rule_.is_small(checked(slot).size_bytes);
}

}  // namespace penstock
