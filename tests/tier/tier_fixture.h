#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "tier/make_tier.h"
#include "tier/tier.h"

namespace penstock {

/// Whole pages, as a pool would give them.
class PageBuffer {
 public:
  explicit PageBuffer(std::int64_t size_bytes)
      : size_bytes_(size_bytes),
        data_(static_cast<std::byte*>(
            ::operator new (static_cast<std::size_t>(round_up(size_bytes + 1, kTierAlignment)),
                            std::align_val_t{kTierAlignment}))) {
    std::memset(data_, 0, static_cast<std::size_t>(round_up(size_bytes + 1, kTierAlignment)));
  }
  PageBuffer(PageBuffer&& other) noexcept : size_bytes_(other.size_bytes_), data_(other.data_) {
    other.data_ = nullptr;
  }
  PageBuffer& operator=(PageBuffer&&) = delete;
  ~PageBuffer() {
    if (data_ != nullptr) ::operator delete (data_, std::align_val_t{kTierAlignment});
  }
  std::byte* data() { return data_; }
  std::int64_t size_bytes() const { return size_bytes_; }
  void fill(std::uint64_t stamp) {
    for (std::int64_t i = 0; i < size_bytes_; ++i) data_[i] = pattern(stamp, i);
  }
  bool holds(std::uint64_t stamp) const {
    for (std::int64_t i = 0; i < size_bytes_; ++i) {
      if (data_[i] != pattern(stamp, i)) return false;
    }
    return true;
  }

 private:
  static std::byte pattern(std::uint64_t stamp, std::int64_t i) {
    const std::uint64_t mixed =
        (stamp * 0x9E3779B97F4A7C15ULL) ^ (static_cast<std::uint64_t>(i) * 0x2545F4914F6CDD1DULL);
    return static_cast<std::byte>(mixed >> 40);
  }

  std::int64_t size_bytes_;
  std::byte* data_;
};

/// A folder of this test process alone, on disk where there is one.
inline std::string test_swap_dir() {
  const std::string path = std::string(PENSTOCK_BINARY_DIR) + "/tier-test-" + std::to_string(::getpid());
  std::filesystem::create_directories(path);
  return path;
}

/// Two buffers for each extent. Declare it before the tier: after an error the tier may use them until it
/// ends.
class Traffic {
 public:
  explicit Traffic(const LongVector<std::int64_t>& extent_bytes) {
    for (const std::int64_t size_bytes : extent_bytes) {
      out_.emplace_back(size_bytes);
      in_.emplace_back(size_bytes);
    }
  }
  PageBuffer& out(int extent) { return out_[static_cast<std::size_t>(extent)]; }
  PageBuffer& in(int extent) { return in_[static_cast<std::size_t>(extent)]; }

  /// Writes all extents, reads them back and compares; the number of those that differ.
  int round_trip(Tier& tier, std::uint64_t stamp) {
    std::vector<Ticket> tickets;
    for (int extent = 0; extent < tier.extent_count(); ++extent) {
      out(extent).fill(stamp + static_cast<std::uint64_t>(extent));
      tickets.push_back(tier.write(extent, out(extent).data()));
    }
    for (int extent = 0; extent < tier.extent_count(); ++extent) {
      const Priority priority = extent % 2 == 0 ? Priority::urgent : Priority::normal;
      tickets.push_back(tier.read(extent, in(extent).data(), priority));
    }
    for (const Ticket ticket : tickets) tier.wait(ticket);
    int wrong = 0;
    for (int extent = 0; extent < tier.extent_count(); ++extent) {
      wrong += in(extent).holds(stamp + static_cast<std::uint64_t>(extent)) ? 0 : 1;
    }
    return wrong;
  }

 private:
  std::vector<PageBuffer> out_;
  std::vector<PageBuffer> in_;
};

}  // namespace penstock
