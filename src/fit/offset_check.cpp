#include "fit/offset_check.h"

#include <fmt/format.h>

#include <iterator>
#include <map>

#include "base/long_vector.h"
#include "memory/pack.h"
#include "memory/pool.h"

namespace penstock::fit {
namespace {

/// What is wrong; caught by check_offsets().
struct Wrong {
  std::string text;
};

/// How a slot lies in one of the pool's two spaces.
struct Extent {
  std::int64_t bytes = 0, alignment = 1;
  bool paged = false;  // among the addresses, else in memory that stays
};

Extent extent_of(std::int64_t size_bytes, std::int64_t grain_bytes) {
  if (grain_bytes == 0 || size_bytes <= grain_bytes / 4)
    return {packed_bytes(size_bytes), packed_alignment(size_bytes), false};
  return {(size_bytes + grain_bytes - 1) / grain_bytes * grain_bytes, grain_bytes, true};
}

/// Which bytes of the pool are held, and by which slot.
class Arena {
 public:
  Arena(const StorageMap& map, const PoolSize& size, std::int64_t grain_bytes)
      : map_(map), size_(size), grain_bytes_(grain_bytes), offset_of_(map.slot_bytes.size(), kAnywhere) {}

  void take(int slot, std::int64_t offset) {
    const Extent extent = extent_of_slot(slot);
    const std::int64_t end = offset + extent.bytes;
    const std::int64_t space_bytes = extent.paged ? size_.address_bytes : size_.small_bytes;
    if (offset < 0 || end > space_bytes || offset % extent.alignment != 0)
      throw Wrong{fmt::format("slot {} of {} bytes at offset {} does not lie in the pool's {} bytes", slot,
                              extent.bytes, offset, space_bytes)};
    std::map<std::int64_t, std::int64_t>& held = extent.paged ? paged_ : small_;
    const auto next = held.lower_bound(offset);
    if ((next != held.end() && next->first < end) ||
        (next != held.begin() && std::prev(next)->second > offset))
      throw Wrong{fmt::format("slot {} at offset {} overlaps one that is in memory", slot, offset)};
    held.emplace(offset, end);
    if (extent.paged) paged_bytes_ += extent.bytes;
    if (paged_bytes_ > size_.paged_bytes)
      throw Wrong{fmt::format("with slot {} more is in memory than there is, which is {} bytes", slot,
                              size_.paged_bytes)};
    offset_of_[static_cast<std::size_t>(slot)] = offset;
  }

  void give_back(int slot) {
    std::int64_t& offset = offset_of_.at(static_cast<std::size_t>(slot));
    if (offset == kAnywhere) throw Wrong{fmt::format("slot {} is given back and was never taken", slot)};
    const Extent extent = extent_of_slot(slot);
    (extent.paged ? paged_ : small_).erase(offset);
    if (extent.paged) paged_bytes_ -= extent.bytes;
    offset = kAnywhere;
  }

  void hand_over(int from, int to) {
    const Extent giver = extent_of_slot(from), taker = extent_of_slot(to);
    if (giver.bytes != taker.bytes || giver.paged != taker.paged)
      throw Wrong{fmt::format("slot {} gets the memory of slot {}, which is of another size", to, from)};
    std::swap(offset_of_.at(static_cast<std::size_t>(from)), offset_of_.at(static_cast<std::size_t>(to)));
  }

  std::int64_t offset(int slot) const { return offset_of_.at(static_cast<std::size_t>(slot)); }

 private:
  Extent extent_of_slot(int slot) const {
    return extent_of(map_.slot_bytes.at(static_cast<std::size_t>(slot)), grain_bytes_);
  }

  const StorageMap& map_;
  const PoolSize& size_;
  std::int64_t grain_bytes_;
  std::map<std::int64_t, std::int64_t> small_, paged_;  ///< what is held of either space: offset -> end
  std::int64_t paged_bytes_ = 0;
  LongVector<std::int64_t> offset_of_;  ///< by slot
};

void follow(const StorageMap& map, const PlannedStep& planned, const PoolSize& size,
            std::int64_t grain_bytes) {
  const plan::Plan& plan = *planned.plan;
  if (plan.homes.size() != map.slot_bytes.size()) throw Wrong{"not every slot has a place between steps"};
  Arena arena(map, size, grain_bytes);
  std::size_t next = 0;
  const auto take = [&](int slot) {
    if (next == plan.offsets.size()) throw Wrong{"there are fewer offsets than times that memory is given"};
    arena.take(slot, plan.offsets[next++]);
  };
  const auto home = [&](int slot) { return plan.homes[static_cast<std::size_t>(slot)]; };
  for (const plan::Standing& place : plan.boundary) {
    if (place.resident) arena.take(place.storage, home(place.storage));
  }
  for (const plan::Instruction& in : plan.instructions) {
    if (in.action == plan::Action::acquire || in.action == plan::Action::swap_in) take(in.id);
    if (in.action == plan::Action::release) arena.give_back(in.id);
    if (in.action == plan::Action::adopt) arena.hand_over(in.from, in.id);
    if (in.action != plan::Action::run) continue;
    const std::int64_t scratch = planned.step->kernel(in.id, in.variant).scratch_bytes();
    if (scratch == 0) continue;
    const int slot = map.scratch_slot.at(scratch);
    take(slot);
    arena.give_back(slot);
  }
  if (next != plan.offsets.size()) throw Wrong{"there are more offsets than times that memory is given"};
  for (const plan::Standing& place : plan.boundary) {
    if (place.resident && arena.offset(place.storage) != home(place.storage))
      throw Wrong{fmt::format("storage {} ends the step elsewhere than it begins", place.storage)};
  }
}

}  // namespace

std::string check_offsets(const StorageMap& map, std::span<const PlannedStep> steps, const PoolSize& size,
                          std::int64_t grain_bytes) {
  const PoolSize needed = pool_size(size.small_bytes, size.paged_bytes, size.address_bytes);
  if (size.small_bytes < 0 || size.paged_bytes < 0 || size.address_bytes < size.paged_bytes ||
      size.pool_bytes < needed.pool_bytes)
    return "the sizes of the pool contradict each other";
  if (grain_bytes > 0 && (size.paged_bytes % grain_bytes != 0 || size.address_bytes % grain_bytes != 0))
    return "the sizes of the pool are no whole units";
  try {
    for (const PlannedStep& planned : steps) follow(map, planned, size, grain_bytes);
  } catch (const Wrong& wrong) {
    return wrong.text;
  }
  return "";
}

}  // namespace penstock::fit
