#include "memory/page_placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "memory/units.h"

namespace penstock {
namespace {

constexpr std::int64_t kSmallestGrain = 4 * kKiB;
/// Each unit may need one mapping where it is, one where it is not, and one for the gap behind it; Linux
/// allows a process 65,530 mappings unless told otherwise.
constexpr std::int64_t kMaxUnits = 16384;

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

PagePlacement::PagePlacement(std::int64_t grain_bytes, std::int64_t memory_bytes, std::int64_t address_bytes)
    : grain_bytes_(grain_bytes),
      memory_bytes_(memory_bytes),
      units_(static_cast<int>(address_bytes / grain_bytes),
             static_cast<int>(std::max<std::int64_t>(1, kHugePage / grain_bytes)),
             static_cast<int>(memory_bytes / grain_bytes)),
      has_memory_(static_cast<std::size_t>(address_bytes / grain_bytes), false) {
  require(memory_bytes % grain_bytes == 0 && address_bytes % grain_bytes == 0 && 0 <= memory_bytes &&
              memory_bytes <= address_bytes,
          "a pool has whole grains of memory, and no fewer addresses");
  std::fill_n(has_memory_.begin(), memory_bytes / grain_bytes, true);
}

bool PagePlacement::fits(std::int64_t offset, std::int64_t size_bytes) const {
  return offset >= 0 && offset + size_bytes <= address_bytes() && held_.is_free(offset, size_bytes) &&
         size_bytes <= units_.free_units() * grain_bytes_;
}

int PagePlacement::find(int unit, int end, bool has_memory) const {
  while (unit < end && has_memory_[static_cast<std::size_t>(unit)] != has_memory) ++unit;
  return unit;
}

const PagePlacement::Moves& PagePlacement::acquire(std::int64_t offset, std::int64_t size_bytes) {
  require(size_bytes > 0 && size_bytes % grain_bytes_ == 0 && offset % grain_bytes_ == 0,
          "a range of addresses is whole grains");
  require(offset >= 0 && offset + size_bytes <= address_bytes(), "a range lies outside the pool's addresses");
  require(held_.is_free(offset, size_bytes), "a range overlaps one that is held");
  if (size_bytes > units_.free_units() * grain_bytes_) {
    throw InternalError(fmt::format("a slot needs {} bytes, and {} of the pool's {} are free", size_bytes,
                                    units_.free_units() * grain_bytes_, memory_bytes_));
  }
  moves_.clear();
  const auto begin = static_cast<int>(offset / grain_bytes_);
  const auto end = static_cast<int>((offset + size_bytes) / grain_bytes_);
  // What is there is taken first, so that none of it is brought from one part of the range to another.
  std::vector<UnitRun> gaps;
  for (int unit = begin; unit < end;) {
    const int there = find(unit, end, true), gone = find(there, end, false);
    if (there > unit) gaps.push_back({unit, there - unit});
    if (gone > there) units_.take({there, gone - there});
    unit = gone;
  }
  for (const UnitRun& gap : gaps) fill(gap.first, gap.first + gap.count);
  held_.add(offset, size_bytes);
  return moves_;
}

/// Brings free memory beneath the units, which have none.
void PagePlacement::fill(int from, int to) {
  while (from < to) {
    // Up to the next frame first, so that whole frames come to lie on frames.
    const int frame_end = static_cast<int>(round_up(from, units_.units_per_frame()));
    const int end = frame_end > from ? std::min(frame_end, to) : to;
    for (const UnitRun& run : units_.allocate(end - from)) {
      moves_.push_back({run.first * grain_bytes_, from * grain_bytes_, run.count * grain_bytes_});
      std::fill_n(has_memory_.begin() + run.first, run.count, false);
      std::fill_n(has_memory_.begin() + from, run.count, true);
      from += run.count;
    }
  }
}

void PagePlacement::release(std::int64_t offset) {
  const std::int64_t size_bytes = held_.remove(offset);
  require(size_bytes > 0, "nothing is held at this offset");
  units_.release({{static_cast<int>(offset / grain_bytes_), static_cast<int>(size_bytes / grain_bytes_)}});
}

}  // namespace penstock
