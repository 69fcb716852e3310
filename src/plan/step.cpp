#include "plan/step.h"

#include <algorithm>

#include "base/long_vector.h"
#include "plan/swap_set.h"

namespace penstock::plan {

Step::Step(const Problem& problem, const LongVector<Rerun>& reruns, bool adopting) : problem_(&problem) {
  const auto ops = static_cast<ir::OpId>(problem.ops.size());
  order_.reserve(problem.ops.size() + reruns.size());
  const bool is_sorted = std::is_sorted(reruns.begin(), reruns.end(),
                                        [](const Rerun& a, const Rerun& b) { return a.before < b.before; });
  LongVector<Rerun> sorted;
  if (!is_sorted) {
    sorted = reruns;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Rerun& a, const Rerun& b) { return a.before < b.before; });
  }
  auto next = (is_sorted ? reruns : sorted).begin();
  const auto last = (is_sorted ? reruns : sorted).end();
  for (ir::OpId op = 0; op < ops; ++op) {
    for (; next != last && next->before == op; ++next) order_.push_back(next->op);
    order_.push_back(op);
  }
  find_accesses();
  if (adopting) find_adopts();
}

void Step::find_accesses() {
  first_access_.assign(storages() + 1, 0);
  for (const ir::OpId op : order_) {
    for (const Use& use : problem_->op(op).uses) ++first_access_[static_cast<std::size_t>(use.storage) + 1];
  }
  for (std::size_t s = 0; s < storages(); ++s) first_access_[s + 1] += first_access_[s];
  accesses_.resize(first_access_.back());
  LongVector<std::uint32_t> next(first_access_.begin(), first_access_.end() - 1);
  for (Position p = 0; p < positions(); ++p) {
    for (const Use& use : at(p).uses) {
      accesses_[next[static_cast<std::size_t>(use.storage)]++] = {p, use.reads, use.writes};
    }
  }
}

void Step::find_adopts() {
  first_adopt_.assign(order_.size() + 1, 0);
  LongVector<std::uint32_t> next_access(storages(), 0);
  /// Whether the use at hand is the last before the value is dead, or made anew.
  const auto dies = [&](ir::StorageId s) {
    const StorageUses storage = this->storage(s);
    const std::uint32_t access = next_access[static_cast<std::size_t>(s)];
    return !storage.carried && !storage.accesses[access].writes && !is_needed_after(storage, access);
  };
  for (Position p = 0; p < positions(); ++p) {
    const std::size_t first = adopts_.size();
    for (const Overwrite& pair : at(p).overwrites) {
      const bool is_taken = std::any_of(
          adopts_.begin() + static_cast<std::ptrdiff_t>(first), adopts_.end(),
          [&](const Overwrite& adopted) { return adopted.from == pair.from || adopted.to == pair.to; });
      if (!is_taken && dies(pair.from)) adopts_.push_back(pair);
    }
    first_adopt_[static_cast<std::size_t>(p) + 1] = static_cast<std::uint32_t>(adopts_.size());
    for (const Use& use : at(p).uses) ++next_access[static_cast<std::size_t>(use.storage)];
  }
}

}  // namespace penstock::plan
