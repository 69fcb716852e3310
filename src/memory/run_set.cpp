#include "memory/run_set.h"

#include <iterator>

#include "base/error.h"

namespace penstock {

void RunSet::add(UnitRun run) {
  if (run.count == 0) return;
  units_ += run.count;
  auto next = runs_.lower_bound(run.first);
  if (next != runs_.end()) {
    require(run.first + run.count <= next->first, "the units are in the set already");
    if (run.first + run.count == next->first) {
      run.count += next->second;
      next = runs_.erase(next);
    }
  }
  if (next != runs_.begin()) {
    const auto previous = std::prev(next);
    require(previous->first + previous->second <= run.first, "the units are in the set already");
    if (previous->first + previous->second == run.first) {
      previous->second += run.count;
      return;
    }
  }
  runs_.emplace_hint(next, run.first, run.count);
}

void RunSet::remove(UnitRun run) {
  if (run.count == 0) return;
  auto holder = runs_.upper_bound(run.first);
  require(holder != runs_.begin(), "the units are not in the set");
  --holder;
  const UnitRun old{holder->first, holder->second};
  require(old.first + old.count >= run.first + run.count, "the units are not in the set");
  units_ -= run.count;
  runs_.erase(holder);
  if (run.first > old.first) runs_.emplace(old.first, run.first - old.first);
  const int rest = old.first + old.count - (run.first + run.count);
  if (rest > 0) runs_.emplace(run.first + run.count, rest);
}

std::optional<UnitRun> RunSet::best_fit(int count) const {
  std::optional<UnitRun> best;
  for (const auto& [first, length] : runs_) {
    if (length >= count && (!best || length < best->count)) best = UnitRun{first, length};
    if (length == count) break;
  }
  return best;
}

std::optional<UnitRun> RunSet::longest() const {
  std::optional<UnitRun> best;
  for (const auto& [first, length] : runs_) {
    if (!best || length > best->count) best = UnitRun{first, length};
  }
  return best;
}

std::optional<UnitRun> RunSet::first() const {
  if (runs_.empty()) return std::nullopt;
  return UnitRun{runs_.begin()->first, runs_.begin()->second};
}

}  // namespace penstock
