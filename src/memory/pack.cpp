#include "memory/pack.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "base/long_vector.h"
#include "memory/taken_space.h"
#include "memory/units.h"

namespace penstock {
namespace {

bool wraps(const PackInterval& interval) {
  return interval.last < interval.first;
}

std::int64_t duration(const PackInterval& interval, std::int64_t end) {
  return interval.last - interval.first + (wraps(interval) ? end : 0);
}

/// All slots with their stays. Arrays for all of them, because there may be a million.
class Slots {
 public:
  Slots(std::span<const PackInterval> intervals, std::size_t count)
      : intervals_(intervals), size_bytes_(count, 0), duration_(count, 0), first_(count + 1, 0) {
    for (const PackInterval& interval : intervals) {
      require(interval.first >= 0 && interval.last >= 0 && interval.size_bytes >= 0,
              "an interval is not negative");
      require(interval.slot >= 0 && static_cast<std::size_t>(interval.slot) < count, "no such slot");
      end_ = std::max({end_, interval.first + 1, interval.last + 1});
      ++first_[static_cast<std::size_t>(interval.slot) + 1];
    }
    for (std::size_t slot = 0; slot < count; ++slot) first_[slot + 1] += first_[slot];
    stays_.resize(intervals.size());
    LongVector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      const auto slot = static_cast<std::size_t>(intervals[i].slot);
      size_bytes_[slot] = intervals[i].size_bytes;
      duration_[slot] += penstock::duration(intervals[i], end_);
      stays_[next[slot]++] = static_cast<std::uint32_t>(i);
    }
  }

  std::int64_t end() const { return end_; }  ///< instructions of a step
  std::int64_t size_bytes(std::size_t slot) const { return size_bytes_[slot]; }
  bool stays(std::size_t slot) const { return first_[slot] < first_[slot + 1]; }
  bool never_leaves(std::size_t slot) const {
    if (first_[slot + 1] - first_[slot] != 1) return false;
    const PackInterval& stay = intervals_[stays_[first_[slot]]];
    return stay.first == 0 && stay.last == end_ - 1;
  }

  /// The stays' time in one step, until the next call.
  const LongVector<Stretch>& stretches(std::size_t slot) {
    stretches_.clear();
    for (std::uint32_t i = first_[slot]; i < first_[slot + 1]; ++i) {
      const PackInterval& stay = intervals_[stays_[i]];
      if (wraps(stay)) {
        stretches_.push_back({0, stay.last});
        stretches_.push_back({stay.first, end_ - 1});
      } else {
        stretches_.push_back({stay.first, stay.last});
      }
    }
    return stretches_;
  }

  /// Those that stay, the largest first, of these the longest.
  LongVector<std::uint32_t> order() const {
    LongVector<std::uint32_t> order;
    order.reserve(size_bytes_.size());
    for (std::size_t slot = 0; slot < size_bytes_.size(); ++slot) {
      if (stays(slot)) order.push_back(static_cast<std::uint32_t>(slot));
    }
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (size_bytes_[a] != size_bytes_[b]) return size_bytes_[a] > size_bytes_[b];
      return duration_[a] > duration_[b];
    });
    return order;
  }

 private:
  std::span<const PackInterval> intervals_;
  LongVector<std::int64_t> size_bytes_, duration_;
  LongVector<std::uint32_t> first_;  // by slot: of its stays; one entry more
  LongVector<std::uint32_t> stays_;  // by slot: which intervals
  LongVector<Stretch> stretches_;
  std::int64_t end_ = 1;
};

}  // namespace

std::int64_t packed_alignment(std::int64_t size_bytes) {
  return size_bytes >= kPackedPage ? kPackedPage : kCacheLine;
}

std::int64_t packed_bytes(std::int64_t size_bytes) {
  return round_up(std::max<std::int64_t>(size_bytes, 1), packed_alignment(size_bytes));
}

Packing pack(std::span<const PackInterval> intervals, int slot_count, std::span<const std::int64_t> fixed) {
  Slots slots(intervals, static_cast<std::size_t>(slot_count));
  const LongVector<std::uint32_t> order = slots.order();
  Packing packing;
  packing.offsets.assign(static_cast<std::size_t>(slot_count), -1);
  TakenSpace taken(slots.end());
  std::int64_t floor = 0;
  const auto place = [&](std::size_t slot, std::int64_t offset) {
    const std::int64_t top = offset + packed_bytes(slots.size_bytes(slot));
    packing.offsets[slot] = offset;
    packing.arena_bytes = std::max(packing.arena_bytes, top);
    for (const Stretch& stretch : slots.stretches(slot)) taken.add(stretch, offset, top);
  };
  for (std::size_t slot = 0; slot < fixed.size(); ++slot) {
    if (fixed[slot] >= 0 && slots.stays(slot)) place(slot, fixed[slot]);
  }
  // What never leaves stands side by side at the bottom: it can leave no gaps there, and nobody has to look
  // at it.
  if (std::none_of(fixed.begin(), fixed.end(), [](std::int64_t offset) { return offset >= 0; })) {
    for (const std::uint32_t slot : order) {
      if (!slots.never_leaves(slot)) continue;
      packing.offsets[slot] = round_up(floor, packed_alignment(slots.size_bytes(slot)));
      floor = packing.offsets[slot] + packed_bytes(slots.size_bytes(slot));
    }
    packing.arena_bytes = floor;
  }
  for (const std::uint32_t slot : order) {
    if (packing.offsets[slot] >= 0) continue;
    place(slot, taken.lowest_gap(slots.stretches(slot), packed_bytes(slots.size_bytes(slot)),
                                 packed_alignment(slots.size_bytes(slot)), floor));
  }
  packing.arena_bytes = round_up(packing.arena_bytes, kPackedPage);
  return packing;
}

}  // namespace penstock
