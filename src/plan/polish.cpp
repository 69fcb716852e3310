#include "plan/polish.h"

#include <utility>

#include "base/long_vector.h"

namespace penstock::plan {
namespace {

using GapId = std::pair<ir::StorageId, std::size_t>;

class Polisher {
 public:
  Polisher(PlanContest& contest, Made made) : contest_(contest), made_(std::move(made)) {
    for (std::size_t s = 0; s < made_.step.storages(); ++s) {
      const StorageUses storage = made_.step.storage(static_cast<ir::StorageId>(s));
      for (std::size_t k = 0; k < storage.accesses.size(); ++k) {
        const bool movable = storage.swappable && storage.footprint_bytes > 0 && is_needed_after(storage, k);
        if (movable) gaps_.emplace_back(static_cast<ir::StorageId>(s), k);
      }
    }
  }

  void polish() {
    for (bool changed = true; changed && !contest_.is_done();) {
      changed = made_.write_start == WriteStart::at_gap && attempt(made_.swaps, WriteStart::at_birth);
      for (std::size_t i = 0; i < gaps_.size() && !contest_.is_done(); ++i) changed |= change(i);
    }
  }

 private:
  static void toggle(SwapSet& swaps, const GapId& gap) {
    swaps.set(gap.first, gap.second, swaps.contains(gap.first, gap.second) ? 0 : 1);
  }
  bool is_swapped(const GapId& gap) const { return made_.swaps.contains(gap.first, gap.second); }

  /// Gap i alone, or together with an earlier one that is swapped if it is not.
  bool change(std::size_t i) {
    SwapSet one = made_.swaps;
    toggle(one, gaps_[i]);
    if (attempt(one, made_.write_start)) return true;
    for (std::size_t j = 0; j < i && !contest_.is_done(); ++j) {
      if (is_swapped(gaps_[j]) == is_swapped(gaps_[i])) continue;
      SwapSet two = one;
      toggle(two, gaps_[j]);
      if (attempt(two, made_.write_start)) return true;
    }
    return false;
  }

  /// Takes the change if it makes the step shorter.
  bool attempt(const SwapSet& swaps, WriteStart write_start) {
    const std::optional<Simulation> simulation = contest_.consider(made_.step, swaps, write_start);
    if (!simulation || simulation->step_seconds >= made_.seconds) return false;
    made_.swaps = swaps;
    made_.write_start = write_start;
    made_.seconds = simulation->step_seconds;
    return true;
  }

  PlanContest& contest_;
  Made made_;
  LongVector<GapId> gaps_;
};

}  // namespace

void polish(PlanContest& contest, Made made) {
  Polisher(contest, std::move(made)).polish();
}

}  // namespace penstock::plan
