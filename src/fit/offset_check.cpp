#include "fit/offset_check.h"

#include <fmt/format.h>

#include <iterator>
#include <map>

#include "memory/pack.h"
#include "memory/pool.h"

namespace penstock::fit {
namespace {

/// What is wrong; caught by check_offsets().
struct Wrong {
  std::string text;
};

/// Which bytes of the arena are held, and by which slot.
class Arena {
 public:
  Arena(const StorageMap& map, std::int64_t bytes)
      : map_(map), bytes_(bytes), offset_of_(map.slot_bytes.size(), kAnywhere) {}

  void take(int slot, std::int64_t offset) {
    const std::int64_t size = map_.slot_bytes.at(static_cast<std::size_t>(slot));
    const std::int64_t end = offset + packed_bytes(size);
    if (offset < 0 || end > bytes_ || offset % packed_alignment(size) != 0)
      throw Wrong{fmt::format("slot {} of {} bytes at offset {} does not lie in the pool of {} bytes", slot,
                              size, offset, bytes_)};
    const auto next = held_.lower_bound(offset);
    if ((next != held_.end() && next->first < end) ||
        (next != held_.begin() && std::prev(next)->second > offset))
      throw Wrong{fmt::format("slot {} at offset {} overlaps one that is in memory", slot, offset)};
    held_.emplace(offset, end);
    offset_of_[static_cast<std::size_t>(slot)] = offset;
  }

  void give_back(int slot) {
    std::int64_t& offset = offset_of_.at(static_cast<std::size_t>(slot));
    if (offset == kAnywhere) throw Wrong{fmt::format("slot {} is given back and was never taken", slot)};
    held_.erase(offset);
    offset = kAnywhere;
  }

  void hand_over(int from, int to) {
    std::swap(offset_of_.at(static_cast<std::size_t>(from)), offset_of_.at(static_cast<std::size_t>(to)));
  }

  std::int64_t offset(int slot) const { return offset_of_.at(static_cast<std::size_t>(slot)); }

 private:
  const StorageMap& map_;
  std::int64_t bytes_;
  std::map<std::int64_t, std::int64_t> held_;  ///< offset -> end
  std::vector<std::int64_t> offset_of_;        ///< by slot
};

void follow(const StorageMap& map, const PlannedStep& planned, std::int64_t pool_bytes) {
  const plan::Plan& plan = *planned.plan;
  if (plan.homes.size() != map.slot_bytes.size()) throw Wrong{"not every slot has a place between steps"};
  Arena arena(map, pool_bytes);
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

std::string check_offsets(const StorageMap& map, std::span<const PlannedStep> steps,
                          std::int64_t pool_bytes) {
  try {
    for (const PlannedStep& planned : steps) follow(map, planned, pool_bytes);
  } catch (const Wrong& wrong) {
    return wrong.text;
  }
  return "";
}

}  // namespace penstock::fit
