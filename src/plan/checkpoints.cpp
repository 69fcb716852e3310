#include "plan/checkpoints.h"

#include <algorithm>

#include "base/long_vector.h"

namespace penstock::plan {
namespace {

/// A storage's value that forward ops after its making still read: it passes over the cuts behind ops [first,
/// last].
struct Passing {
  ir::StorageId storage;
  std::size_t access;  ///< its last use in forward
  std::int64_t first, last;
};

LongVector<Passing> find_passing(const Problem& problem, std::int64_t forward_ops) {
  LongVector<Passing> found;
  for (std::size_t s = 0; s < problem.storages.size(); ++s) {
    const StorageInfo& storage = problem.storages[s];
    if (storage.carried || storage.accesses.empty() || storage.accesses.front().position >= forward_ops)
      continue;
    // The value that survives forward: made by the last write, read by what follows.
    std::size_t made = 0, last = 0;
    for (std::size_t k = 0; k < storage.accesses.size() && storage.accesses[k].position < forward_ops; ++k) {
      if (storage.accesses[k].writes) made = k;
      last = k;
    }
    if (last + 1 < storage.accesses.size() && last > made) {
      found.push_back({static_cast<ir::StorageId>(s), last, storage.accesses[made].position,
                       storage.accesses[last].position - 1});
    }
  }
  return found;
}

}  // namespace

SwapSet checkpoint_gaps(const Problem& problem, const Profile& profile, int segments) {
  SwapSet marked(problem);
  std::int64_t forward_ops = 0;
  double forward_seconds = 0;
  LongVector<double> end_seconds;
  for (const ir::Op& op : problem.graph->ops) {
    if (op.phase == ir::Phase::backward) break;
    forward_seconds += profile.seconds(static_cast<ir::OpId>(forward_ops++));
    end_seconds.push_back(forward_seconds);
  }
  if (segments <= 0 || forward_ops == 0) return marked;
  const LongVector<Passing> passing = find_passing(problem, forward_ops);
  LongVector<std::int64_t> bytes(static_cast<std::size_t>(forward_ops) + 1, 0);
  for (const Passing& p : passing) {
    bytes[static_cast<std::size_t>(p.first)] += problem.storage(p.storage).footprint_bytes;
    bytes[static_cast<std::size_t>(p.last) + 1] -= problem.storage(p.storage).footprint_bytes;
  }
  for (std::size_t i = 1; i < bytes.size(); ++i) bytes[i] += bytes[i - 1];
  LongVector<std::int64_t> cuts;
  for (std::int64_t i = 0; i < forward_ops;) {
    const int segment =
        static_cast<int>(end_seconds[static_cast<std::size_t>(i)] / forward_seconds * segments);
    std::int64_t best = i;
    for (; i < forward_ops &&
           static_cast<int>(end_seconds[static_cast<std::size_t>(i)] / forward_seconds * segments) == segment;
         ++i) {
      if (bytes[static_cast<std::size_t>(i)] <= bytes[static_cast<std::size_t>(best)]) best = i;
    }
    cuts.push_back(best);
  }
  for (const Passing& p : passing) {
    const auto cut = std::lower_bound(cuts.begin(), cuts.end(), p.first);
    if (cut == cuts.end() || *cut > p.last) continue;
    const StorageInfo& storage = problem.storage(p.storage);
    for (std::size_t k = p.access; k < storage.accesses.size(); ++k) marked.set(p.storage, k, 1);
  }
  return marked;
}

}  // namespace penstock::plan
