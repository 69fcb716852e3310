#include "fit/move_count.h"

#include <algorithm>

#include "plan/walker.h"

namespace penstock::fit {
namespace {

constexpr int kWarmUpSteps = 4;

class MoveCounter : public plan::PlanVisitor {
 public:
  MoveCounter(const PlannedStep& planned, const StorageMap& map, const VirtualPoolRule& rule,
              std::int64_t capacity_bytes)
      : planned_(planned), map_(map), placement_(map.slot_bytes, rule, capacity_bytes) {}

  double moves_each() {
    plan::Walker walker(*planned_.problem, *planned_.plan);
    walker.begin(*this);
    for (int i = 0; i <= kWarmUpSteps; ++i) {
      moves_ = times_ = 0;
      walker.step(*this);
    }
    return static_cast<double>(moves_) / static_cast<double>(std::max<std::int64_t>(times_, 1));
  }

  void stands(const plan::Standing& standing) {
    if (standing.resident) acquire(standing.storage);
  }
  void got_memory(ir::StorageId storage, plan::Action /*by*/) { acquire(storage); }
  void lost_memory(ir::StorageId storage) { placement_.release(storage); }
  void adopted(ir::StorageId to, ir::StorageId from) { count(placement_.hand_over(from, to)); }
  void begins(const plan::OpRun& run) {
    const std::int64_t bytes = planned_.step->kernel(run.op, run.variant).scratch_bytes();
    if (bytes == 0) return;
    const int slot = map_.scratch_slot.at(bytes);
    acquire(slot);
    placement_.release(slot);
  }

 private:
  void acquire(int slot) {
    const PagePlacement::Moves& moves = placement_.acquire(slot);
    if (placement_.footprint_bytes(slot) > 0) count(moves);
  }

  void count(const PagePlacement::Moves& moves) {
    moves_ += static_cast<std::int64_t>(moves.size());
    ++times_;
  }

  const PlannedStep& planned_;
  const StorageMap& map_;
  PagePlacement placement_;
  std::int64_t moves_ = 0;
  std::int64_t times_ = 0;
};

}  // namespace

double moves_each(const PlannedStep& planned, const StorageMap& map, const VirtualPoolRule& rule,
                  std::int64_t capacity_bytes) {
  return MoveCounter(planned, map, rule, capacity_bytes).moves_each();
}

}  // namespace penstock::fit
