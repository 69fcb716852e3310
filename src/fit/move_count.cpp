#include "fit/move_count.h"

#include <algorithm>

#include "base/long_vector.h"
#include "plan/walker.h"

namespace penstock::fit {
namespace {

constexpr int kWarmUpSteps = 4;

class MoveCounter : public plan::PlanVisitor {
 public:
  MoveCounter(const PlannedStep& planned, const StorageMap& map, const VirtualPoolRule& rule,
              const PoolSize& size)
      : planned_(planned),
        map_(map),
        rule_(rule),
        placement_(rule.grain_bytes(), size.paged_bytes, size.address_bytes),
        offset_of_(map.slot_bytes.size(), kAnywhere) {}

  double moves_each() {
    plan::Walker walker(*planned_.problem, *planned_.plan);
    walker.begin(*this);
    for (int i = 0; i <= kWarmUpSteps; ++i) {
      moves_ = times_ = 0;
      next_ = 0;
      walker.step(*this);
    }
    return static_cast<double>(moves_) / static_cast<double>(std::max<std::int64_t>(times_, 1));
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
    if (footprint(slot) == 0) return;
    offset_of_[static_cast<std::size_t>(slot)] = offset;
    moves_ += static_cast<std::int64_t>(placement_.acquire(offset, footprint(slot)).size());
  }

  const PlannedStep& planned_;
  const StorageMap& map_;
  const VirtualPoolRule& rule_;
  PagePlacement placement_;
  LongVector<std::int64_t> offset_of_;  // by slot, while it is held
  std::size_t next_ = 0;                // of the plan's offsets
  std::int64_t moves_ = 0;
  std::int64_t times_ = 0;
};

}  // namespace

double moves_each(const PlannedStep& planned, const StorageMap& map, const VirtualPoolRule& rule,
                  const PoolSize& size) {
  return MoveCounter(planned, map, rule, size).moves_each();
}

}  // namespace penstock::fit
