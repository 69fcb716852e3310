#include "plan/tier_space.h"

#include <algorithm>

#include "base/long_vector.h"
#include "plan/memory_curve.h"
#include "plan/tier_places.h"

namespace penstock::plan {

std::int64_t tier_bytes(const Problem& problem, const Plan& plan) {
  const SolvedProblem solved{&problem, &plan};
  return place_on_tier({&solved, 1}).bytes;
}

Problem within_tier(const Problem& problem, const Plan& plan, std::int64_t space_bytes) {
  const LongVector<TierStay> stays = tier_stays(problem, plan);
  struct Swapped {
    std::size_t storage = 0, first_stay = 0, stays = 0;
    int rank = 2;
    std::int64_t idle = 0;
  };
  LongVector<Swapped> ranked;
  std::int64_t end = 1;
  for (std::size_t i = 0; i < stays.size(); ++i) {
    const auto s = static_cast<std::size_t>(stays[i].storage);
    if (ranked.empty() || ranked.back().storage != s)
      ranked.push_back({s, i, 0, problem.storages[s].carried ? 1 : 2, 0});
    ++ranked.back().stays;
    ranked.back().idle += stays[i].last - stays[i].first + 1;
    end = std::max(end, stays[i].last + 1);
  }
  // What a given boundary has there stays there; other state cannot be made anew.
  LongVector<std::uint8_t> stands(problem.storages.size(), 0);
  for (const Standing& standing : problem.boundary ? *problem.boundary : Boundary{})
    stands[static_cast<std::size_t>(standing.storage)] = standing.on_tier ? 1 : 0;
  for (Swapped& swapped : ranked) swapped.rank = stands[swapped.storage] != 0 ? 0 : swapped.rank;
  const auto frees = [&](const Swapped& swapped) {
    const StorageInfo& storage = problem.storages[swapped.storage];
    return static_cast<double>(swapped.idle) * static_cast<double>(storage.footprint_bytes) /
           static_cast<double>(storage.size_bytes);
  };
  std::stable_sort(ranked.begin(), ranked.end(), [&](const Swapped& a, const Swapped& b) {
    return a.rank != b.rank ? a.rank < b.rank : frees(a) > frees(b);
  });
  Problem limited = problem;
  limited.tier_bytes = kNoLimit;
  for (StorageInfo& storage : limited.storages) storage.swappable = false;
  MemoryCurve taken(static_cast<std::size_t>(end));
  for (const Swapped& swapped : ranked) {
    const std::int64_t bytes = place_bytes(problem.storages[swapped.storage].size_bytes);
    const auto first = stays.begin() + static_cast<std::ptrdiff_t>(swapped.first_stay);
    const auto last = first + static_cast<std::ptrdiff_t>(swapped.stays);
    const bool fits = std::all_of(first, last, [&](const TierStay& stay) {
      return taken.max(stay.first, stay.last) + bytes <= space_bytes;
    });
    if (!fits) continue;
    for (auto stay = first; stay != last; ++stay) taken.add(stay->first, stay->last, bytes);
    limited.storages[swapped.storage].swappable = true;
  }
  return limited;
}

}  // namespace penstock::plan
