#include "plan/droppable.h"

#include <algorithm>
#include <utility>

#include "base/long_vector.h"

namespace penstock::plan {
namespace {

/// Values of at least these parts of the memory pass, in one set or another.
constexpr std::int64_t kPassingParts[] = {6, 10, 20};

/// Whether an op not far from this one uses the storage, so that it is in memory about then.
bool is_at_hand(const StorageInfo& storage, Position at) {
  const Access* next = storage.next_use(at - kLongGap + 1);
  return next != nullptr && next->position < at + kLongGap;
}

double source_seconds(const Problem& problem, const Profile& profile, const LongVector<ir::OpId>& chain,
                      Position at) {
  double bytes = 0;
  for (const ir::StorageId s : sources_of(problem, chain)) {
    const StorageInfo& storage = problem.storage(s);
    if (storage.swappable && !is_at_hand(storage, at)) bytes += static_cast<double>(storage.size_bytes);
  }
  return bytes / profile.tier.read_bandwidth;
}

}  // namespace

LongVector<ir::StorageId> sources_of(const Problem& problem, const LongVector<ir::OpId>& chain) {
  LongVector<ir::TensorId> made;
  LongVector<ir::StorageId> found;
  for (const ir::OpId op : chain) {
    for (const ir::TensorId input : problem.graph->op(op).inputs) {
      const ir::StorageId storage = problem.graph->tensor(input).storage;
      const bool known = std::find(made.begin(), made.end(), input) != made.end() ||
                         std::find(found.begin(), found.end(), storage) != found.end();
      if (!known && !problem.storage(storage).carried) found.push_back(storage);
    }
    for (const ir::TensorId output : problem.graph->op(op).outputs) made.push_back(output);
  }
  return found;
}

void sort_by_cost(LongVector<Droppable>& droppable, const TransferPrices& prices) {
  const auto cost = [&](const Droppable& gap) {
    const double read_price = prices.read[static_cast<std::size_t>(gap.to)];
    const double write_price = prices.write[static_cast<std::size_t>(gap.from)];
    return (gap.seconds + (gap.source_seconds - gap.read_seconds) * read_price -
            gap.write_seconds * write_price) /
           gap.read_seconds;
  };
  std::stable_sort(droppable.begin(), droppable.end(),
                   [&](const Droppable& a, const Droppable& b) { return cost(a) < cost(b); });
}

LongVector<Droppable> find_droppable(const Problem& problem, const Profile& profile, Recomputer& recomputer,
                                     DropGaps gaps) {
  LongVector<Droppable> found;
  const auto is_backward = [&](const Access& access) {
    return problem.graph->op(access.position).phase == ir::Phase::backward;
  };
  for (std::size_t s = 0; s < problem.storages.size(); ++s) {
    const auto storage = static_cast<ir::StorageId>(s);
    const StorageInfo& info = problem.storages[s];
    for (std::size_t k = 0; k + 1 < info.accesses.size(); ++k) {
      const Access &use = info.accesses[k], &next = info.accesses[k + 1];
      if (!is_needed_after(info, k)) continue;
      const bool between = !is_backward(use) && is_backward(next);
      const bool is_long = next.position - use.position >= kLongGap;
      if (!between && (gaps != DropGaps::all || !is_long)) continue;
      const LongVector<ir::OpId> ops = recomputer.chain(storage, k);
      if (ops.empty()) continue;
      Droppable gap{storage, k, 0, profile.seconds(ops.back()), 0, 0, 0, use.position, next.position};
      if (gaps == DropGaps::all) gap.source_seconds = source_seconds(problem, profile, ops, next.position);
      for (const ir::OpId op : ops) gap.seconds += profile.seconds(op);
      gap.write_seconds = static_cast<double>(info.size_bytes) / profile.tier.write_bandwidth;
      gap.read_seconds = static_cast<double>(info.size_bytes) / profile.tier.read_bandwidth;
      found.push_back(gap);
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Droppable& a, const Droppable& b) {
    return a.seconds * b.read_seconds < b.seconds * a.read_seconds;
  });
  return found;
}

LongVector<LongVector<OnTheWay>> passing_sets(const Problem& problem,
                                              const LongVector<Droppable>& droppable) {
  LongVector<LongVector<OnTheWay>> sets(1);
  for (const std::int64_t part : kPassingParts) {
    LongVector<OnTheWay> passing(problem.storages.size(), OnTheWay::by_rule);
    bool any = false;
    for (const Droppable& gap : droppable) {
      if (problem.storage(gap.storage).footprint_bytes < problem.budget_bytes / part) continue;
      passing[static_cast<std::size_t>(gap.storage)] = OnTheWay::passes;
      any = true;
    }
    if (any && passing != sets.back()) sets.push_back(std::move(passing));
  }
  return sets;
}

}  // namespace penstock::plan
