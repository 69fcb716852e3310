#include "memory/pack.h"

#include <algorithm>
#include <numeric>

#include "base/bytes.h"
#include "base/error.h"
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

/// The stays' time in one step of `end` instructions.
std::vector<Stretch> stretches_of(const std::vector<PackInterval>& stays, std::int64_t end) {
  std::vector<Stretch> stretches;
  for (const PackInterval& stay : stays) {
    if (wraps(stay)) {
      stretches.push_back({0, stay.last});
      stretches.push_back({stay.first, end - 1});
    } else {
      stretches.push_back({stay.first, stay.last});
    }
  }
  return stretches;
}

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
  TakenSpace taken(end);
  std::int64_t floor = 0;
  const auto place = [&](std::size_t index, std::int64_t offset) {
    const std::int64_t top = offset + packed_bytes(slots[index].size_bytes);
    packing.offsets[index] = offset;
    packing.arena_bytes = std::max(packing.arena_bytes, top);
    for (const Stretch& stretch : stretches_of(slots[index].stays, end)) taken.add(stretch, offset, top);
  };
  for (std::size_t index = 0; index < fixed.size(); ++index) {
    if (fixed[index] >= 0 && !slots[index].stays.empty()) place(index, fixed[index]);
  }
  // What never leaves stands side by side at the bottom: it can leave no gaps there, and nobody has to look
  // at it.
  if (std::none_of(fixed.begin(), fixed.end(), [](std::int64_t offset) { return offset >= 0; })) {
    for (const std::size_t index : order) {
      const Slot& slot = slots[index];
      if (slot.stays.size() != 1 || slot.stays[0].first != 0 || slot.stays[0].last != end - 1) continue;
      packing.offsets[index] = round_up(floor, packed_alignment(slot.size_bytes));
      floor = packing.offsets[index] + packed_bytes(slot.size_bytes);
    }
    packing.arena_bytes = floor;
  }
  for (const std::size_t index : order) {
    const Slot& slot = slots[index];
    if (slot.stays.empty() || packing.offsets[index] >= 0) continue;
    place(index, taken.lowest_gap(stretches_of(slot.stays, end), packed_bytes(slot.size_bytes),
                                  packed_alignment(slot.size_bytes), floor));
  }
  packing.arena_bytes = round_up(packing.arena_bytes, kPackedPage);
  return packing;
}

}  // namespace penstock
