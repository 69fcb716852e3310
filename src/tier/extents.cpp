#include "tier/extents.h"

#include "base/bytes.h"
#include "base/error.h"
#include "tier/tier.h"

namespace penstock {

Extents::Extents(const std::vector<std::int64_t>& extent_bytes) {
  for (const std::int64_t size_bytes : extent_bytes) {
    require(size_bytes >= 0, "an extent's size is not negative");
    extents_.push_back({size_bytes, total_bytes_});
    total_bytes_ += round_up(size_bytes, kTierAlignment);
  }
}

std::int64_t Extents::padded_bytes(int extent) const {
  return round_up(checked(extent).size_bytes, kTierAlignment);
}

const Extents::Extent& Extents::checked(int extent) const {
  require(extent >= 0 && extent < count(), "no such extent");
  return extents_[static_cast<std::size_t>(extent)];
}

}  // namespace penstock
