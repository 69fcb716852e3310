#include "memory/pack.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/bytes.h"
#include "base/error.h"

namespace penstock {
namespace {

constexpr std::int64_t kCacheLine = 64;
constexpr std::int64_t kBuckets = 512;

bool wraps(const PackInterval& interval) {
  return interval.last < interval.first;
}

bool overlap(const PackInterval& a, const PackInterval& b) {
  if (wraps(a) && wraps(b)) return true;
  if (wraps(a)) return b.last >= a.first || b.first <= a.last;
  if (wraps(b)) return a.last >= b.first || a.first <= b.last;
  return a.first <= b.last && b.first <= a.last;
}

std::int64_t duration(const PackInterval& interval, std::int64_t end) {
  return interval.last - interval.first + (wraps(interval) ? end : 0);
}

/// Intervals placed so far, found by time: the step is cut into buckets, and an interval is listed in each it
/// touches.
class PlacedByTime {
 public:
  PlacedByTime(std::span<const PackInterval> intervals, std::int64_t end)
      : intervals_(intervals), width_(end / kBuckets + 1), buckets_(kBuckets), seen_(intervals.size(), 0) {}

  void add(std::size_t index) {
    for_each_bucket(intervals_[index], [&](std::vector<std::size_t>& bucket) { bucket.push_back(index); });
  }

  /// All placed intervals that live at some time together with this one.
  const std::vector<std::size_t>& overlapping(std::size_t index) {
    found_.clear();
    ++stamp_;
    for_each_bucket(intervals_[index], [&](const std::vector<std::size_t>& bucket) {
      for (const std::size_t other : bucket) {
        if (seen_[other] == stamp_) continue;
        seen_[other] = stamp_;
        if (overlap(intervals_[index], intervals_[other])) found_.push_back(other);
      }
    });
    return found_;
  }

 private:
  template <typename Visit>
  void for_each_bucket(const PackInterval& interval, Visit visit) {
    const std::int64_t first = interval.first / width_;
    const std::int64_t last = interval.last / width_;
    for (std::int64_t bucket = 0; bucket < kBuckets; ++bucket) {
      const bool inside =
          wraps(interval) ? bucket >= first || bucket <= last : bucket >= first && bucket <= last;
      if (inside) visit(buckets_[static_cast<std::size_t>(bucket)]);
    }
  }

  std::span<const PackInterval> intervals_;
  std::int64_t width_;
  std::vector<std::vector<std::size_t>> buckets_;
  std::vector<std::size_t> seen_;
  std::vector<std::size_t> found_;
  std::size_t stamp_ = 0;
};

/// Where the smallest gap between the taken ranges (offset, end) that holds the bytes begins; behind all of
/// them if none does.
std::int64_t smallest_gap(std::vector<std::pair<std::int64_t, std::int64_t>>& taken,
                          std::int64_t size_bytes) {
  std::sort(taken.begin(), taken.end());
  const std::int64_t bytes = packed_bytes(size_bytes);
  const std::int64_t alignment = packed_alignment(size_bytes);
  std::int64_t cursor = 0;
  std::int64_t best = -1;
  std::int64_t best_gap = std::numeric_limits<std::int64_t>::max();
  for (const auto& [offset, stop] : taken) {
    const std::int64_t gap = offset - cursor;
    if (gap >= bytes && gap < best_gap) {
      best = cursor;
      best_gap = gap;
    }
    cursor = std::max(cursor, round_up(stop, alignment));
  }
  return best < 0 ? cursor : best;
}

}  // namespace

std::int64_t packed_alignment(std::int64_t size_bytes) {
  return size_bytes >= kPackedPage ? kPackedPage : kCacheLine;
}

std::int64_t packed_bytes(std::int64_t size_bytes) {
  return round_up(std::max<std::int64_t>(size_bytes, 1), packed_alignment(size_bytes));
}

Packing pack(std::span<const PackInterval> intervals, int slot_count) {
  struct Slot {
    std::int64_t size_bytes = 0;
    std::int64_t duration = 0;
    std::vector<std::size_t> stays;
  };
  std::vector<Slot> slots(static_cast<std::size_t>(slot_count));
  std::int64_t end = 1;
  for (const PackInterval& interval : intervals) {
    require(interval.first >= 0 && interval.last >= 0 && interval.size_bytes >= 0,
            "an interval is not negative");
    end = std::max({end, interval.first + 1, interval.last + 1});
  }
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    require(intervals[i].slot >= 0 && intervals[i].slot < slot_count, "no such slot");
    Slot& slot = slots[static_cast<std::size_t>(intervals[i].slot)];
    slot.size_bytes = intervals[i].size_bytes;
    slot.duration += duration(intervals[i], end);
    slot.stays.push_back(i);
  }
  std::vector<std::size_t> order(slots.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (slots[a].size_bytes != slots[b].size_bytes) return slots[a].size_bytes > slots[b].size_bytes;
    return slots[a].duration > slots[b].duration;
  });
  Packing packing;
  packing.offsets.assign(slots.size(), -1);
  PlacedByTime placed(intervals, end);
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;  // offset, end
  for (const std::size_t index : order) {
    const Slot& slot = slots[index];
    if (slot.stays.empty()) continue;
    taken.clear();
    for (const std::size_t stay : slot.stays) {
      for (const std::size_t other : placed.overlapping(stay)) {
        const std::int64_t offset = packing.offsets[static_cast<std::size_t>(intervals[other].slot)];
        taken.emplace_back(offset, offset + packed_bytes(intervals[other].size_bytes));
      }
    }
    packing.offsets[index] = smallest_gap(taken, slot.size_bytes);
    packing.arena_bytes =
        std::max(packing.arena_bytes, packing.offsets[index] + packed_bytes(slot.size_bytes));
    for (const std::size_t stay : slot.stays) placed.add(stay);
  }
  packing.arena_bytes = round_up(packing.arena_bytes, kPackedPage);
  return packing;
}

}  // namespace penstock
