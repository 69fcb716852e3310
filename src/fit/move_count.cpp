#include "fit/move_count.h"

#include <algorithm>

namespace penstock::fit {
namespace {

constexpr int kWarmUpSteps = 4;

class MoveCounter {
 public:
  MoveCounter(const lower::Executable& step, const plan::Plan& plan, const StorageMap& map,
              const VirtualPoolRule& rule, std::int64_t capacity_bytes)
      : step_(step), plan_(plan), map_(map), placement_(map.slot_bytes, rule, capacity_bytes) {}

  double moves_each() {
    for (const plan::Standing& place : plan_.boundary) {
      if (place.resident) acquire(place.storage);
    }
    for (int i = 0; i <= kWarmUpSteps; ++i) {
      moves_ = times_ = 0;
      for (const plan::Instruction& in : plan_.instructions) obey(in);
    }
    return static_cast<double>(moves_) / static_cast<double>(std::max<std::int64_t>(times_, 1));
  }

 private:
  void obey(const plan::Instruction& in) {
    switch (in.action) {
      case plan::Action::acquire:
      case plan::Action::swap_in:
        return acquire(in.id);
      case plan::Action::release:
        return placement_.release(in.id);
      case plan::Action::adopt:
        return count(placement_.hand_over(in.from, in.id));
      case plan::Action::run:
        return use_scratch(step_.kernel(in.id, in.variant).scratch_bytes());
      case plan::Action::swap_out:
      case plan::Action::wait:
        return;
    }
  }

  void acquire(int slot) {
    const PagePlacement::Moves& moves = placement_.acquire(slot);
    if (placement_.footprint_bytes(slot) > 0) count(moves);
  }

  void use_scratch(std::int64_t bytes) {
    if (bytes == 0) return;
    const int slot = map_.scratch_slot.at(bytes);
    acquire(slot);
    placement_.release(slot);
  }

  void count(const PagePlacement::Moves& moves) {
    moves_ += static_cast<std::int64_t>(moves.size());
    ++times_;
  }

  const lower::Executable& step_;
  const plan::Plan& plan_;
  const StorageMap& map_;
  PagePlacement placement_;
  std::int64_t moves_ = 0;
  std::int64_t times_ = 0;
};

}  // namespace

double moves_each(const lower::Executable& step, const plan::Plan& plan, const StorageMap& map,
                  const VirtualPoolRule& rule, std::int64_t capacity_bytes) {
  return MoveCounter(step, plan, map, rule, capacity_bytes).moves_each();
}

}  // namespace penstock::fit
