#include "fit/move_count.h"

#include <algorithm>

#include "base/long_vector.h"
#include "memory/units.h"
#include "plan/walker.h"

namespace penstock::fit {
namespace {

constexpr int kWarmUpSteps = 4;
/// Moving a huge page costs one entry of a page table, and less by this factor than its bytes in small pages.
constexpr std::int64_t kHugePageGain = 16;

class MoveCounter : public plan::PlanVisitor {
 public:
  MoveCounter(const PlannedStep& planned, const StorageMap& map, const VirtualPoolRule& rule,
              const PoolSize& size)
      : planned_(planned),
        map_(map),
        rule_(rule),
        placement_(rule.grain_bytes(), size.paged_bytes, size.address_bytes),
        offset_of_(map.slot_bytes.size(), kAnywhere) {}

  MoveCount count() {
    plan::Walker walker(*planned_.problem, *planned_.plan);
    walker.begin(*this);
    for (int i = 0; i <= kWarmUpSteps; ++i) {
      moves_ = times_ = moved_bytes_ = given_bytes_ = 0;
      next_ = 0;
      walker.step(*this);
    }
    const auto per = [](std::int64_t count, std::int64_t of) {
      return static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(of, 1));
    };
    return {per(moves_, times_), per(moved_bytes_, given_bytes_)};
  }

  void stands(const plan::Standing& standing) {
    if (standing.resident)
      acquire(standing.storage, planned_.plan->homes[static_cast<std::size_t>(standing.storage)]);
  }
  void got_memory(ir::StorageId storage, plan::Action /*by*/) { acquire(storage, next_offset()); }
  void lost_memory(ir::StorageId storage) {
    if (footprint(storage) > 0) placement_.release(offset_of_[static_cast<std::size_t>(storage)]);
  }
  /// Nothing moves: the memory is called after another slot.
  void adopted(ir::StorageId to, ir::StorageId from) {
    offset_of_[static_cast<std::size_t>(to)] = offset_of_[static_cast<std::size_t>(from)];
    ++times_;
    given_bytes_ += map_.slot_bytes[static_cast<std::size_t>(to)];
  }
  void begins(const plan::OpRun& run) {
    const std::int64_t bytes = planned_.step->kernel(run.op, run.variant).scratch_bytes();
    if (bytes == 0) return;
    const int slot = map_.scratch_slot.at(bytes);
    acquire(slot, next_offset());
    lost_memory(slot);
  }

 private:
  std::int64_t next_offset() { return planned_.plan->offsets[next_++]; }

  /// Of the memory that moves.
  std::int64_t footprint(int slot) const {
    return rule_.footprint_bytes(map_.slot_bytes[static_cast<std::size_t>(slot)]);
  }

  void acquire(int slot, std::int64_t offset) {
    ++times_;
    given_bytes_ += map_.slot_bytes[static_cast<std::size_t>(slot)];
    if (footprint(slot) == 0) return;
    offset_of_[static_cast<std::size_t>(slot)] = offset;
    for (const PagePlacement::Move& move : placement_.acquire(offset, footprint(slot))) {
      ++moves_;
      const bool whole = move.from % kHugePage == 0 && move.to % kHugePage == 0;
      const std::int64_t huge_bytes = whole ? move.size_bytes / kHugePage * kHugePage : 0;
      moved_bytes_ += move.size_bytes - huge_bytes + huge_bytes / kHugePageGain;
    }
  }

  const PlannedStep& planned_;
  const StorageMap& map_;
  const VirtualPoolRule& rule_;
  PagePlacement placement_;
  LongVector<std::int64_t> offset_of_;  // by slot, while it is held
  std::size_t next_ = 0;                // of the plan's offsets
  std::int64_t moves_ = 0, times_ = 0;
  std::int64_t moved_bytes_ = 0, given_bytes_ = 0;
};

}  // namespace

MoveCount count_moves(const PlannedStep& planned, const StorageMap& map, const VirtualPoolRule& rule,
                      const PoolSize& size) {
  return MoveCounter(planned, map, rule, size).count();
}

}  // namespace penstock::fit
