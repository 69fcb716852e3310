#include "memory/pack.h"

#include <algorithm>
#include <numeric>

#include "base/bytes.h"
#include "base/error.h"

namespace penstock {
namespace {

constexpr std::int64_t kCacheLine = 64;
constexpr std::int64_t kBuckets = 2048;
/// An interval that touches so many buckets or more is a long one.
constexpr std::int64_t kFewBuckets = 8;

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

/// What is placed, as the search sees it: bytes and time.
struct Range {
  std::int64_t offset, end;
  PackInterval interval;
};

bool is_lower(const Range& a, const Range& b) {
  return a.offset < b.offset;
}

/// Ranges by offset, in chunks, so that inserting one moves few others.
class SortedRanges {
 public:
  void insert(const Range& range) {
    if (chunks_.empty()) chunks_.emplace_back();
    auto chunk = std::upper_bound(
        chunks_.begin(), chunks_.end(), range,
        [](const Range& r, const std::vector<Range>& c) { return !c.empty() && is_lower(r, c.front()); });
    if (chunk != chunks_.begin()) --chunk;
    chunk->insert(std::upper_bound(chunk->begin(), chunk->end(), range, is_lower), range);
    if (chunk->size() < kChunk) return;
    const auto middle = chunk->begin() + kChunk / 2;
    std::vector<Range> upper(middle, chunk->end());
    chunk->erase(middle, chunk->end());
    chunks_.insert(chunk + 1, std::move(upper));
  }

  /// Goes through them in order.
  class Cursor {
   public:
    explicit Cursor(const SortedRanges& ranges) : ranges_(&ranges) { skip_empty(); }
    const Range* get() const {
      return chunk_ < ranges_->chunks_.size() ? &ranges_->chunks_[chunk_][at_] : nullptr;
    }
    void next() {
      if (++at_ < ranges_->chunks_[chunk_].size()) return;
      ++chunk_;
      at_ = 0;
      skip_empty();
    }

   private:
    void skip_empty() {
      while (chunk_ < ranges_->chunks_.size() && ranges_->chunks_[chunk_].empty()) ++chunk_;
    }
    const SortedRanges* ranges_;
    std::size_t chunk_ = 0, at_ = 0;
  };

 private:
  static constexpr std::ptrdiff_t kChunk = 512;
  std::vector<std::vector<Range>> chunks_;
};

/// Intervals placed so far, by offset. The step is cut into buckets of time; an interval that touches few of
/// them is listed in each, one that touches many in a list for all. So a search for a short stay looks at
/// what is about it, one for a long stay at everything, each in the order of offsets and without sorting
/// anything.
class Placed {
 public:
  explicit Placed(std::int64_t end) : width_(end / kBuckets + 1), buckets_(kBuckets) {}

  /// Nothing is placed below this offset from now on.
  void set_floor(std::int64_t offset) { floor_ = offset; }

  void add(const PackInterval& interval, std::int64_t offset) {
    const Range range{offset, offset + packed_bytes(interval.size_bytes), interval};
    all_.insert(range);
    if (is_long(interval)) return long_.insert(range);
    for (std::int64_t b = interval.first / width_; b <= interval.last / width_; ++b)
      buckets_[static_cast<std::size_t>(b)].insert(range);
  }

  /// The lowest offset at which nothing lies that is there together with one of the stays, all of one size.
  std::int64_t lowest_gap(std::span<const PackInterval> stays) {
    const std::int64_t bytes = packed_bytes(stays.front().size_bytes);
    const std::int64_t alignment = packed_alignment(stays.front().size_bytes);
    list_candidates(stays);
    std::int64_t cursor = round_up(floor_, alignment);
    while (const Range* range = next_candidate()) {
      // What ends below the cursor cannot be in the way, and needs no look at its time.
      if (range->end <= cursor) continue;
      const bool meets = std::any_of(stays.begin(), stays.end(), [&](const PackInterval& stay) {
        return overlap(stay, range->interval);
      });
      if (!meets) continue;
      if (range->offset - cursor >= bytes) return cursor;
      cursor = std::max(cursor, round_up(range->end, alignment));
    }
    return cursor;
  }

 private:
  bool is_long(const PackInterval& interval) const {
    return wraps(interval) || interval.last / width_ - interval.first / width_ >= kFewBuckets;
  }

  /// The lists that have all that may be there together with a stay; a range may be in several.
  void list_candidates(std::span<const PackInterval> stays) {
    lists_.clear();
    if (stays.size() > 1 || is_long(stays.front())) {
      lists_.emplace_back(all_);
      return;
    }
    lists_.emplace_back(long_);
    for (std::int64_t b = stays.front().first / width_; b <= stays.front().last / width_; ++b)
      lists_.emplace_back(buckets_[static_cast<std::size_t>(b)]);
  }

  /// The next in the order of offsets; null after the last.
  const Range* next_candidate() {
    SortedRanges::Cursor* lowest = nullptr;
    for (SortedRanges::Cursor& list : lists_) {
      if (list.get() != nullptr && (lowest == nullptr || is_lower(*list.get(), *lowest->get())))
        lowest = &list;
    }
    if (lowest == nullptr) return nullptr;
    const Range* range = lowest->get();
    lowest->next();
    return range;
  }

  std::int64_t width_;
  std::int64_t floor_ = 0;
  std::vector<SortedRanges> buckets_;  // of short intervals
  SortedRanges long_, all_;
  std::vector<SortedRanges::Cursor> lists_;  // what the search has still to look at
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
  // What never leaves stands side by side at the bottom: it can leave no gaps there, and nobody has to look
  // at it.
  if (std::none_of(fixed.begin(), fixed.end(), [](std::int64_t offset) { return offset >= 0; })) {
    std::int64_t floor = 0;
    for (const std::size_t index : order) {
      const Slot& slot = slots[index];
      if (slot.stays.size() != 1 || slot.stays[0].first != 0 || slot.stays[0].last != end - 1) continue;
      packing.offsets[index] = round_up(floor, packed_alignment(slot.size_bytes));
      floor = packing.offsets[index] + packed_bytes(slot.size_bytes);
    }
    packing.arena_bytes = floor;
    placed.set_floor(floor);
  }
  for (const std::size_t index : order) {
    if (!slots[index].stays.empty() && packing.offsets[index] < 0)
      place(index, placed.lowest_gap(slots[index].stays));
  }
  packing.arena_bytes = round_up(packing.arena_bytes, kPackedPage);
  return packing;
}

}  // namespace penstock
