#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/long_vector.h"
#include "penstock/options.h"
#include "tier/tier.h"

namespace penstock {

/// Hash (XXH3) of an extent's bytes under the key (extent, generation). With `sampled`, which bytes of a page
/// are taken depends on the key and the page, so that no byte is out of sight for ever.
std::uint64_t hash_extent(const void* data, std::int64_t size_bytes, int extent, std::uint64_t generation,
                          VerifyMode mode);

/// Checks that each extent comes back as it was last written: damaged, stale or misplaced data is a RunError
/// at wait(). The hash is taken in the caller's thread, in write() and in wait(); one is kept per extent.
class VerifiedTier final : public Tier {
 public:
  VerifiedTier(std::unique_ptr<Tier> inner, VerifyMode mode);

  int extent_count() const override { return inner_->extent_count(); }
  std::int64_t extent_bytes(int extent) const override { return inner_->extent_bytes(extent); }
  std::int64_t extent_offset(int extent) const override { return inner_->extent_offset(extent); }
  void place(std::span<const std::int64_t> offsets) override { inner_->place(offsets); }
  Ticket write(int extent, const void* data, Priority priority) override;
  Ticket read(int extent, void* data, Priority priority) override;
  void wait(Ticket ticket) override;
  bool done(Ticket ticket) override { return inner_->done(ticket); }
  TierStats stats() const override { return inner_->stats(); }

 private:
  struct Written {
    std::uint64_t generation = 0;  // 0: never
    std::uint64_t hash = 0;
  };
  struct PendingRead {
    int extent = 0;
    const void* data = nullptr;
    Written expected;
  };

  std::unique_ptr<Tier> inner_;
  VerifyMode mode_;
  LongVector<Written> written_;
  std::unordered_map<Ticket, PendingRead> reads_;
  std::string error_;  // the first, if any
};

}  // namespace penstock
