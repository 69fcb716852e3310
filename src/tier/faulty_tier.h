#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "tier/tier.h"

namespace penstock {

/// What goes wrong with the `at`-th request (from 0, reads and writes counted together).
struct TierFault {
  enum class Kind {
    io_error,     // EIO at wait()
    no_space,     // ENOSPC at wait()
    flipped_bit,  // one bit of the extent differs
    stale,        // a write that does not happen, a read that brings nothing
    misplaced,    // another extent is written or read in its place
  };
  Kind kind = Kind::io_error;
  std::int64_t at = 0;
  bool lasting = false;  // every request from `at` on
};

struct FaultyTierOptions {
  std::optional<TierFault> fault;
  /// Holds requests back and starts them in random order, as late as the contract allows: whoever touches a
  /// buffer too early gets wrong data.
  bool random_order = false;
  /// wait() sleeps for a random time up to this.
  double max_delay_seconds = 0;
  std::uint64_t seed = 0;
};

/// Does to requests what a bad disk or a bad driver would, for tests.
class FaultyTier final : public Tier {
 public:
  FaultyTier(std::unique_ptr<Tier> inner, FaultyTierOptions options);
  ~FaultyTier() override;

  int extent_count() const override { return inner_->extent_count(); }
  std::int64_t extent_bytes(int extent) const override { return inner_->extent_bytes(extent); }
  std::int64_t extent_offset(int extent) const override { return inner_->extent_offset(extent); }
  void place(std::span<const std::int64_t> offsets) override { inner_->place(offsets); }
  Ticket write(int extent, const void* data, Priority priority) override;
  Ticket read(int extent, void* data, Priority priority) override;
  void wait(Ticket ticket) override;
  bool done(Ticket ticket) override;
  TierStats stats() const override { return inner_->stats(); }
  /// Requests so far.
  std::int64_t requests() const { return requests_; }

 private:
  class Buffer;
  struct Request {
    bool is_write = false;
    int extent = 0;
    void* data = nullptr;
    std::optional<TierFault::Kind> fault;
    bool started = false;
    Ticket inner = 0;                 // 0: nothing was asked of the inner tier
    std::unique_ptr<Buffer> replica;  // damaged data to write, or what another extent held
  };

  Ticket add(bool is_write, int extent, void* data);
  void start(Request& request);
  void start_damaged_write(Request& request);
  /// Starts a request that is held back and is the oldest of its extent; chosen at random. False: there is
  /// none.
  bool start_one();
  int neighbour(int extent) const;
  std::uint32_t random(std::uint32_t bound);

  std::unique_ptr<Tier> inner_;
  FaultyTierOptions options_;
  CounterRandom random_;
  std::uint64_t draws_ = 0;
  std::int64_t requests_ = 0;
  Ticket last_ticket_ = 0;
  std::map<Ticket, Request> open_;
  std::string error_;
};

}  // namespace penstock
