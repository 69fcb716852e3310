#include "memory/pack.h"

#include <algorithm>
#include <numeric>
#include <utility>

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

/// Intervals placed so far. The step is cut into buckets of time, and an interval is listed in each it
/// touches: so a short one is compared only with those about it, and one that touches many with all.
class Placed {
 public:
  explicit Placed(std::int64_t end) : width_(end / kBuckets + 1), buckets_(kBuckets) {}

  void add(const PackInterval& interval, std::int64_t offset) {
    const std::size_t index = ranges_.size();
    ranges_.push_back({offset, offset + packed_bytes(interval.size_bytes), interval, 0});
    const auto lower = [this](std::size_t a, std::size_t b) { return ranges_[a].offset < ranges_[b].offset; };
    by_offset_.insert(std::upper_bound(by_offset_.begin(), by_offset_.end(), index, lower), index);
    for_each_bucket(interval, [&](std::vector<std::size_t>& bucket) { bucket.push_back(index); });
  }

  /// The lowest offset at which nothing lies that is there together with one of the stays, all of one size.
  std::int64_t lowest_gap(std::span<const PackInterval> stays) {
    const std::int64_t bytes = packed_bytes(stays.front().size_bytes);
    const std::int64_t alignment = packed_alignment(stays.front().size_bytes);
    std::int64_t cursor = 0;
    for (const std::size_t index : candidates(stays)) {
      const Range& range = ranges_[index];
      const bool meets = std::any_of(stays.begin(), stays.end(),
                                     [&](const PackInterval& stay) { return overlap(stay, range.interval); });
      if (!meets) continue;
      if (range.offset - cursor >= bytes) return cursor;
      cursor = std::max(cursor, round_up(range.end, alignment));
    }
    return cursor;
  }

 private:
  struct Range {
    std::int64_t offset, end;
    PackInterval interval;
    std::size_t seen;  // by the search of that number
  };

  /// By offset, all that may be there together with a stay.
  const std::vector<std::size_t>& candidates(std::span<const PackInterval> stays) {
    std::size_t listed = 0;
    for (const PackInterval& stay : stays) {
      for_each_bucket(stay, [&](const std::vector<std::size_t>& bucket) { listed += bucket.size(); });
    }
    // Sorting costs more than looking.
    if (listed > ranges_.size() / 4) return by_offset_;
    found_.clear();
    ++searches_;
    for (const PackInterval& stay : stays) {
      for_each_bucket(stay, [&](const std::vector<std::size_t>& bucket) {
        for (const std::size_t index : bucket) {
          if (std::exchange(ranges_[index].seen, searches_) != searches_) found_.push_back(index);
        }
      });
    }
    std::sort(found_.begin(), found_.end(),
              [this](std::size_t a, std::size_t b) { return ranges_[a].offset < ranges_[b].offset; });
    return found_;
  }

  template <typename Visit>
  void for_each_bucket(const PackInterval& interval, const Visit& visit) {
    const auto visit_all = [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t bucket = first; bucket <= last; ++bucket)
        visit(buckets_[static_cast<std::size_t>(bucket)]);
    };
    const std::int64_t first = interval.first / width_, last = interval.last / width_;
    if (!wraps(interval)) return visit_all(first, last);
    visit_all(first, kBuckets - 1);
    visit_all(0, std::min(last, first - 1));
  }

  std::int64_t width_;
  std::vector<Range> ranges_;
  std::vector<std::size_t> by_offset_;
  std::vector<std::vector<std::size_t>> buckets_;
  std::vector<std::size_t> found_;
  std::size_t searches_ = 0;
};

}  // namespace

std::int64_t packed_alignment(std::int64_t size_bytes) {
  return size_bytes >= kPackedPage ? kPackedPage : kCacheLine;
}

std::int64_t packed_bytes(std::int64_t size_bytes) {
  return round_up(std::max<std::int64_t>(size_bytes, 1), packed_alignment(size_bytes));
}

Packing pack(std::span<const PackInterval> intervals, int slot_count, std::span<const std::int64_t> fixed) {
  struct Slot {
    std::int64_t size_bytes = 0;
    std::int64_t duration = 0;
    std::vector<PackInterval> stays;
  };
  std::vector<Slot> slots(static_cast<std::size_t>(slot_count));
  std::int64_t end = 1;
  for (const PackInterval& interval : intervals) {
    require(interval.first >= 0 && interval.last >= 0 && interval.size_bytes >= 0,
            "an interval is not negative");
    end = std::max({end, interval.first + 1, interval.last + 1});
  }
  for (const PackInterval& interval : intervals) {
    require(interval.slot >= 0 && interval.slot < slot_count, "no such slot");
    Slot& slot = slots[static_cast<std::size_t>(interval.slot)];
    slot.size_bytes = interval.size_bytes;
    slot.duration += duration(interval, end);
    slot.stays.push_back(interval);
  }
  std::vector<std::size_t> order(slots.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (slots[a].size_bytes != slots[b].size_bytes) return slots[a].size_bytes > slots[b].size_bytes;
    return slots[a].duration > slots[b].duration;
  });
  Packing packing;
  packing.offsets.assign(slots.size(), -1);
  Placed placed(end);
  const auto place = [&](std::size_t index, std::int64_t offset) {
    packing.offsets[index] = offset;
    packing.arena_bytes = std::max(packing.arena_bytes, offset + packed_bytes(slots[index].size_bytes));
    for (const PackInterval& stay : slots[index].stays) placed.add(stay, offset);
  };
  for (std::size_t index = 0; index < fixed.size(); ++index) {
    if (fixed[index] >= 0 && !slots[index].stays.empty()) place(index, fixed[index]);
  }
  for (const std::size_t index : order) {
    if (!slots[index].stays.empty() && packing.offsets[index] < 0)
      place(index, placed.lowest_gap(slots[index].stays));
  }
  packing.arena_bytes = round_up(packing.arena_bytes, kPackedPage);
  return packing;
}

}  // namespace penstock
