#include "memory/page_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "memory/units.h"

namespace penstock {
namespace {

constexpr std::int64_t kSmallestGrain = 4 * kKiB;
/// Each unit may need one mapping where it is, one where it is not, and one for the gap behind it; Linux
/// allows a process 65,530 mappings unless told otherwise.
constexpr std::int64_t kMaxUnits = 16384;

int unit_count(const VirtualPoolRule& rule, std::int64_t capacity_bytes, std::int64_t fixed_bytes) {
  return static_cast<int>(std::max<std::int64_t>(0, capacity_bytes - fixed_bytes) / rule.grain_bytes());
}

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

PagePlacement::PagePlacement(std::span<const std::int64_t> slot_bytes, const VirtualPoolRule& rule,
                             std::int64_t capacity_bytes)
    : grain_bytes_(rule.grain_bytes()),
      units_(unit_count(rule, capacity_bytes, rule.fixed_bytes(slot_bytes)),
             static_cast<int>(std::max<std::int64_t>(1, kHugePage / rule.grain_bytes()))) {
  for (const std::int64_t size_bytes : slot_bytes) {
    require(size_bytes >= 0, "a slot's size is not negative");
    slots_.push_back({rule.footprint_bytes(size_bytes), 0, false, {}});
  }
  lay_out_slots();
  where_.resize(static_cast<std::size_t>(units_.free_units()));
  for (std::size_t i = 0; i < where_.size(); ++i) where_[i] = home(static_cast<int>(i));
}

void PagePlacement::lay_out_slots() {
  // A slot with a body of whole frames starts on a frame, so that huge pages can be mapped as such.
  for (Slot& slot : slots_) {
    if (slot.footprint_bytes == 0) continue;
    if (slot.footprint_bytes >= kHugePage) slots_end_ = round_up(slots_end_, kHugePage);
    slot.offset = slots_end_;
    slots_end_ += slot.footprint_bytes;
  }
}

const PagePlacement::Moves& PagePlacement::acquire(int slot) {
  Slot& taker = slots_[static_cast<std::size_t>(slot)];
  require(!taker.held, "the slot has memory already");
  moves_.clear();
  if (taker.footprint_bytes > 0) fill(taker);
  taker.held = true;
  return moves_;
}

/// What is left of the slot's memory where it was: visit(offset, run), both in units.
template <typename Visit>
void PagePlacement::for_each_left(const Slot& slot, const Visit& visit) const {
  const auto is_left = [&](int unit, int offset) {
    return where_[static_cast<std::size_t>(unit)] == slot.offset + offset * grain_bytes_;
  };
  int offset = 0;
  for (const UnitRun& run : slot.runs) {
    for (int done = 0; done < run.count;) {
      int end = done;
      while (end < run.count && is_left(run.first + end, offset + end)) ++end;
      if (end > done) visit(offset + done, UnitRun{run.first + done, end - done});
      done = end + 1;
    }
    offset += run.count;
  }
}

/// Leaves what is left in its place and takes free memory for the rest.
void PagePlacement::fill(Slot& taker) {
  const auto needed = static_cast<int>(taker.footprint_bytes / grain_bytes_);
  if (needed > units_.free_units()) {
    throw InternalError(fmt::format("a slot needs {} bytes, and {} of the pool's {} are free",
                                    taker.footprint_bytes, units_.free_units() * grain_bytes_, unit_bytes()));
  }
  std::vector<std::pair<int, UnitRun>> left;
  for_each_left(taker, [&](int offset, const UnitRun& run) {
    units_.take(run);
    left.emplace_back(offset, run);
  });
  std::vector<UnitRun> runs;
  int filled = 0;
  for (const auto& [offset, run] : left) {
    fill_gap(taker, filled, offset, runs);
    append_run(runs, run);
    filled = offset + run.count;
  }
  fill_gap(taker, filled, needed, runs);
  taker.runs = std::move(runs);
}

void PagePlacement::fill_gap(const Slot& taker, int from, int to, std::vector<UnitRun>& runs) {
  while (from < to) {
    // Up to the next frame first, so that whole frames come to lie on frames.
    const int frame_end = static_cast<int>(round_up(from, units_.units_per_frame()));
    const int end = frame_end > from ? std::min(frame_end, to) : to;
    for (const UnitRun& run : units_.allocate(end - from)) {
      bring(run, taker.offset + from * grain_bytes_);
      append_run(runs, run);
      from += run.count;
    }
  }
}

void PagePlacement::release(int slot) {
  Slot& giver = slots_[static_cast<std::size_t>(slot)];
  require(giver.held, "the slot has no memory to release");
  giver.held = false;
  units_.release(giver.runs);
}

const PagePlacement::Moves& PagePlacement::hand_over(int from, int to) {
  Slot &giver = slots_[static_cast<std::size_t>(from)], &taker = slots_[static_cast<std::size_t>(to)];
  require(giver.held && !taker.held && giver.footprint_bytes == taker.footprint_bytes &&
              giver.footprint_bytes > 0,
          "the slot's memory cannot be handed over");
  moves_.clear();
  empty(taker);
  std::int64_t offset = taker.offset;
  for (const UnitRun& run : giver.runs) {
    bring(run, offset);
    offset += run.count * grain_bytes_;
  }
  taker.runs = std::exchange(giver.runs, {});
  giver.held = false;
  taker.held = true;
  return moves_;
}

const PagePlacement::Moves& PagePlacement::send_home(int slot) {
  require(!held(slot), "the slot is in use");
  moves_.clear();
  empty(slots_[static_cast<std::size_t>(slot)]);
  return moves_;
}

void PagePlacement::empty(Slot& slot) {
  for_each_left(slot, [&](int, const UnitRun& run) { bring(run, home(run.first)); });
  slot.runs.clear();
}

/// Moves the units, from wherever they are, to lie at `to` one after the other.
void PagePlacement::bring(const UnitRun& run, std::int64_t to) {
  const int end = run.first + run.count;
  for (int first = run.first; first < end;) {
    const std::int64_t from = where_[static_cast<std::size_t>(first)];
    const std::int64_t begin = to + (first - run.first) * grain_bytes_;
    int next = first;
    for (; next < end && where_[static_cast<std::size_t>(next)] == from + (next - first) * grain_bytes_;
         ++next) {
      where_[static_cast<std::size_t>(next)] = begin + (next - first) * grain_bytes_;
    }
    moves_.push_back({from, begin, (next - first) * grain_bytes_});
    first = next;
  }
}

bool PagePlacement::fits(int slot) const {
  return !held(slot) && footprint_bytes(slot) <= units_.free_units() * grain_bytes_;
}

}  // namespace penstock
