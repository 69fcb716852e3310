#include "tier/extents.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/long_vector.h"
#include "tier/tier.h"

namespace penstock {

TierExtents::TierExtents(const LongVector<std::int64_t>& extent_bytes) {
  for (const std::int64_t size_bytes : extent_bytes) {
    require(size_bytes >= 0, "an extent's size is not negative");
    extents_.push_back({size_bytes, total_bytes_});
    total_bytes_ += round_up(size_bytes, kTierAlignment);
  }
}

TierExtents::TierExtents(std::initializer_list<std::int64_t> extent_bytes)
    : TierExtents(LongVector<std::int64_t>(extent_bytes)) {}

TierExtents::TierExtents(const LongVector<std::int64_t>& extent_bytes, std::span<const std::int64_t> offsets,
                         std::int64_t total_bytes)
    : TierExtents(extent_bytes) {
  total_bytes_ = total_bytes;
  place(offsets);
}

void TierExtents::place(std::span<const std::int64_t> offsets) {
  require(offsets.size() == extents_.size(), "not every extent is told its place");
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::int64_t end = offsets[i] + round_up(extents_[i].size_bytes, kTierAlignment);
    require(offsets[i] == -1 || (offsets[i] >= 0 && offsets[i] % kTierAlignment == 0 && end <= total_bytes_),
            "an extent does not lie in the tier's file");
    extents_[i].offset_bytes = offsets[i];
  }
}

std::int64_t TierExtents::padded_bytes(int extent) const {
  return round_up(checked(extent).size_bytes, kTierAlignment);
}

const TierExtents::Extent& TierExtents::checked(int extent) const {
  require(extent >= 0 && extent < count(), "no such extent");
  return extents_[static_cast<std::size_t>(extent)];
}

}  // namespace penstock
