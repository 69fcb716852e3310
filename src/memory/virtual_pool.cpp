#include "memory/virtual_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/bytes.h"
#include "base/error.h"
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

}  // namespace

bool VirtualPool::pages_can_move() {
  return pages_move();
}

void VirtualPool::set_pages_can_move(bool can) {
  pages_move() = can;
}

VirtualPool::VirtualPool(const std::vector<std::int64_t>& slot_bytes, const VirtualPoolRule& rule,
                         std::int64_t capacity_bytes, bool poison)
    : rule_(rule),
      capacity_bytes_(capacity_bytes),
      poison_(poison),
      placement_(slot_bytes, rule, capacity_bytes) {
  const std::int64_t fixed_bytes = rule_.fixed_bytes(slot_bytes);
  if (fixed_bytes > capacity_bytes) {
    throw UserError(
        fmt::format("the pool of {} cannot hold even the small tensors, which take {}; give more memory",
                    format_bytes(capacity_bytes), format_bytes(fixed_bytes)));
  }
  require_available(capacity_bytes, "the memory pool");
  mapped_bytes_ = peak_bytes_ = fixed_bytes;
  space_ = AddressRange(placement_.slots_end(), AddressRange::Access::none);
  fixed_ = AddressRange(fixed_bytes, AddressRange::Access::read_write);
  home_ = AddressRange(placement_.unit_bytes(), AddressRange::Access::read_write);
  fixed_.populate();
  home_.populate();
  std::int64_t fixed_offset = 0;
  for (std::size_t i = 0; i < slot_bytes.size(); ++i) {
    const int slot = static_cast<int>(i);
    if (placement_.footprint_bytes(slot) > 0) {
      slots_.push_back({slot_bytes[i], at(placement_.offset(slot))});
    } else {
      slots_.push_back({slot_bytes[i], fixed_.data() + fixed_offset});
      fixed_offset += round_up(std::max<std::int64_t>(slot_bytes[i], 1), kCacheLine);
    }
  }
}

const VirtualPool::Slot& VirtualPool::checked(int slot) const {
  require(slot >= 0 && static_cast<std::size_t>(slot) < slots_.size(), "no such slot");
  return slots_[static_cast<std::size_t>(slot)];
}

std::byte* VirtualPool::at(std::int64_t offset) const {
  const std::int64_t beyond = offset - placement_.slots_end();
  return beyond >= 0 ? home_.data() + beyond : space_.data() + offset;
}

void* VirtualPool::acquire(int slot, std::int64_t offset) {
  require(offset == kAnywhere, "a virtual pool places its slots itself");
  const Slot& taker = checked(slot);
  make(placement_.acquire(slot));
  mapped_bytes_ += placement_.footprint_bytes(slot);
  asked_bytes_ += taker.size_bytes;
  peak_bytes_ = std::max(peak_bytes_, mapped_bytes_);
  peak_lost_bytes_ = std::max(peak_lost_bytes_, mapped_bytes_ - asked_bytes_);
  return taker.address;
}

void VirtualPool::release(int slot) {
  const Slot& giver = checked(slot);
  placement_.release(slot);
  mapped_bytes_ -= placement_.footprint_bytes(slot);
  asked_bytes_ -= giver.size_bytes;
  if (!poison_) return;
  std::memset(giver.address, kPoisonByte, static_cast<std::size_t>(giver.size_bytes));
  make(placement_.send_home(slot));
}

void VirtualPool::hand_over(int from, int to) {
  const std::int64_t more_bytes = checked(to).size_bytes - checked(from).size_bytes;
  make(placement_.hand_over(from, to));
  asked_bytes_ += more_bytes;
  peak_lost_bytes_ = std::max(peak_lost_bytes_, mapped_bytes_ - asked_bytes_);
}

void VirtualPool::make(const PagePlacement::Moves& moves) {
  for (const PagePlacement::Move& each : moves) {
    move(at(each.from), at(each.to), each.size_bytes);
    if (each.from < placement_.slots_end()) close(at(each.from), each.size_bytes);
  }
}

void VirtualPool::copy(std::byte* from, std::byte* to, std::int64_t size_bytes) {
  ++moves_;
  for (std::int64_t done = 0; done < size_bytes; done += kCopiedBytes) {
    const auto size = static_cast<std::size_t>(std::min(kCopiedBytes, size_bytes - done));
    const bool copied = ::mprotect(to + done, size, PROT_READ | PROT_WRITE) == 0;
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
  require(placement_.held(slot), "the slot has no memory");
  return found.address;
}

bool VirtualPool::held(int slot) const {
  checked(slot);
  return placement_.held(slot);
}

bool VirtualPool::fits(int slot, std::int64_t offset) const {
  require(offset == kAnywhere, "a virtual pool places its slots itself");
  checked(slot);
  return placement_.fits(slot);
}

bool VirtualPool::swappable(int slot) const {
  checked(slot);
  return placement_.footprint_bytes(slot) > 0;
}

}  // namespace penstock
