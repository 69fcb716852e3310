#include "memory/pack.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/bytes.h"
#include "base/error.h"

namespace penstock {
namespace {

constexpr std::int64_t kPage = 4 * kKiB;
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

}  // namespace

std::int64_t packed_alignment(std::int64_t size_bytes) {
  return size_bytes >= kPage ? kPage : kCacheLine;
}

std::int64_t packed_bytes(std::int64_t size_bytes) {
  return round_up(std::max<std::int64_t>(size_bytes, 1), packed_alignment(size_bytes));
}

Packing pack(std::span<const PackInterval> intervals) {
  std::int64_t end = 1;
  for (const PackInterval& interval : intervals) {
    require(interval.first >= 0 && interval.last >= 0 && interval.size_bytes >= 0,
            "an interval is not negative");
    end = std::max({end, interval.first + 1, interval.last + 1});
  }
  std::vector<std::size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (intervals[a].size_bytes != intervals[b].size_bytes)
      return intervals[a].size_bytes > intervals[b].size_bytes;
    return duration(intervals[a], end) > duration(intervals[b], end);
  });
  Packing packing;
  packing.offsets.assign(intervals.size(), 0);
  PlacedByTime placed(intervals, end);
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;  // offset, end
  for (const std::size_t index : order) {
    taken.clear();
    for (const std::size_t other : placed.overlapping(index)) {
      taken.emplace_back(packing.offsets[other],
                         packing.offsets[other] + packed_bytes(intervals[other].size_bytes));
    }
    std::sort(taken.begin(), taken.end());
    const std::int64_t bytes = packed_bytes(intervals[index].size_bytes);
    const std::int64_t alignment = packed_alignment(intervals[index].size_bytes);
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
    if (best < 0) best = cursor;
    packing.offsets[index] = best;
    packing.arena_bytes = std::max(packing.arena_bytes, best + bytes);
    placed.add(index);
  }
  packing.arena_bytes = round_up(packing.arena_bytes, kPage);
  return packing;
}

std::vector<std::vector<std::int64_t>> packed_offsets(std::span<const PackInterval> intervals,
                                                      const Packing& packing, int slot_count) {
  std::vector<std::size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const bool a_wraps = wraps(intervals[a]);
    if (a_wraps != wraps(intervals[b])) return a_wraps;
    return intervals[a].first < intervals[b].first;
  });
  std::vector<std::vector<std::int64_t>> offsets(static_cast<std::size_t>(slot_count));
  for (const std::size_t index : order) {
    require(intervals[index].slot >= 0 && intervals[index].slot < slot_count, "no such slot");
    offsets[static_cast<std::size_t>(intervals[index].slot)].push_back(packing.offsets[index]);
  }
  return offsets;
}

}  // namespace penstock
