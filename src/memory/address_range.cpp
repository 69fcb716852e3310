#include "memory/address_range.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/threads.h"
#include "memory/process.h"
#include "memory/units.h"

namespace penstock {
namespace {

void populate_part(std::byte* data, std::int64_t size_bytes) {
#ifdef MADV_POPULATE_WRITE
  if (::madvise(data, static_cast<std::size_t>(size_bytes), MADV_POPULATE_WRITE) == 0) return;
#endif
  for (std::int64_t offset = 0; offset < size_bytes; offset += kSmallPage) {
    *reinterpret_cast<volatile std::byte*>(data + offset) = std::byte{0};
  }
}

}  // namespace

AddressRange::AddressRange(std::int64_t size_bytes, Access access) : size_bytes_(size_bytes) {
  if (size_bytes == 0) return;
  mapping_bytes_ = round_up(size_bytes, kSmallPage) + kHugePage;
  const int protection = access == Access::none ? PROT_NONE : PROT_READ | PROT_WRITE;
  mapping_ = ::mmap(nullptr, static_cast<std::size_t>(mapping_bytes_), protection,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping_ == MAP_FAILED) {
    mapping_ = nullptr;
    throw UserError(fmt::format("cannot map {} of memory: {}; give a smaller budget",
                                format_bytes(size_bytes), std::strerror(errno)));
  }
  const auto start = reinterpret_cast<std::uintptr_t>(mapping_);
  const auto shift = (kHugePage - static_cast<std::int64_t>(start % kHugePage)) % kHugePage;
  data_ = static_cast<std::byte*>(mapping_) + shift;
}

AddressRange::AddressRange(AddressRange&& other) noexcept
    : mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(std::exchange(other.mapping_bytes_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

AddressRange& AddressRange::operator=(AddressRange&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

AddressRange::~AddressRange() {
  if (mapping_ != nullptr) ::munmap(mapping_, static_cast<std::size_t>(mapping_bytes_));
}

void AddressRange::populate(std::int64_t bytes) {
  if (bytes == 0) return;
  const std::int64_t total_bytes = round_up(bytes, kSmallPage);
  if (::mprotect(data_, static_cast<std::size_t>(total_bytes), PROT_READ | PROT_WRITE) != 0) {
    throw UserError(fmt::format("cannot open {} of memory: {}; give a smaller budget", format_bytes(bytes),
                                std::strerror(errno)));
  }
  // Only whole huge pages, or the last one would take more than was asked for.
  const std::int64_t huge_bytes = total_bytes / kHugePage * kHugePage;
  if (huge_bytes > 0) ::madvise(data_, static_cast<std::size_t>(huge_bytes), MADV_HUGEPAGE);
  const auto threads = static_cast<std::int64_t>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
  const std::int64_t part_bytes = round_up((total_bytes + threads - 1) / threads, kHugePage);
  std::atomic<std::int64_t> next{0};
  const auto take_parts = [&] {
    for (std::int64_t offset = next.fetch_add(part_bytes); offset < total_bytes;
         offset = next.fetch_add(part_bytes)) {
      populate_part(data_ + offset, std::min(part_bytes, total_bytes - offset));
    }
  };
  std::vector<std::thread> helpers;
  try {
    if (part_bytes < total_bytes) {
      helpers = start_threads(static_cast<int>(threads) - 1, take_parts, "takes memory");
    }
  } catch (const RunError&) {
    // Alone it takes longer.
  }
  take_parts();
  for (std::thread& helper : helpers) helper.join();
  ::madvise(data_, static_cast<std::size_t>(total_bytes), MADV_NOHUGEPAGE);
}

void require_available(std::int64_t size_bytes, const char* what) {
  const std::int64_t available = available_memory_bytes();
  if (size_bytes > available) {
    throw UserError(fmt::format("{} needs {} of memory, and there is {}; give a smaller budget", what,
                                format_bytes(size_bytes), format_bytes(available)));
  }
}

}  // namespace penstock
