#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "tier/tier.h"

namespace penstock {

/// Makes a tier look slower: each direction has a bandwidth of its own, and its requests end one after the
/// other at that pace, however fast the inner tier is. The caller sleeps in wait() for what is missing. 0
/// bytes/s: no limit.
class ThrottledTier final : public Tier {
 public:
  ThrottledTier(std::unique_ptr<Tier> inner, std::int64_t read_bytes_per_second,
                std::int64_t write_bytes_per_second);

  int extent_count() const override { return inner_->extent_count(); }
  std::int64_t extent_bytes(int extent) const override { return inner_->extent_bytes(extent); }
  std::int64_t extent_offset(int extent) const override { return inner_->extent_offset(extent); }
  void place(std::span<const std::int64_t> offsets) override { inner_->place(offsets); }
  Ticket write(int extent, const void* data, Priority priority) override;
  Ticket read(int extent, void* data, Priority priority) override;
  void wait(Ticket ticket) override;
  bool done(Ticket ticket) override;
  /// Seconds are those of the slow link.
  TierStats stats() const override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Link {
    std::int64_t bytes_per_second = 0;
    Clock::time_point free_at;
    double busy_seconds = 0;
  };
  void book(Link& link, Ticket ticket, std::int64_t size_bytes);

  std::unique_ptr<Tier> inner_;
  Link read_link_;
  Link write_link_;
  std::unordered_map<Ticket, Clock::time_point> ends_;
  std::int64_t stalls_ = 0;
  double stall_seconds_ = 0;
};

}  // namespace penstock
