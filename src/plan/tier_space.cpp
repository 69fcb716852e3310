#include "plan/tier_space.h"

#include <algorithm>

#include "plan/walker.h"

namespace penstock::plan {
namespace {

/// By storage: whether it is on the tier at any time, and over how many runs of ops it has no memory.
struct TierUse : PlanVisitor {
  TierUse(const Problem& problem, const Plan& plan)
      : on_tier(problem.storages.size(), 0),
        idle(problem.storages.size(), 0),
        since_(problem.storages.size(), -1) {
    Walker walker(problem, plan);
    walker.begin(*this);
    walker.step(*this);
    for (std::size_t s = 0; s < since_.size(); ++s) {
      if (since_[s] >= 0) idle[s] += runs_ - since_[s];
    }
  }

  void stands(const Standing& standing) {
    const auto s = static_cast<std::size_t>(standing.storage);
    if (standing.on_tier) on_tier[s] = 1;
    if (!standing.resident) since_[s] = 0;
  }
  void started(ir::StorageId s, Transfer direction) {
    if (direction == Transfer::write) on_tier[static_cast<std::size_t>(s)] = 1;
  }
  void got_memory(ir::StorageId storage, Action) {
    std::int64_t& since = since_[static_cast<std::size_t>(storage)];
    if (since >= 0) idle[static_cast<std::size_t>(storage)] += runs_ - since;
    since = -1;
  }
  void lost_memory(ir::StorageId s) { since_[static_cast<std::size_t>(s)] = runs_; }
  void ends(const OpRun&) { ++runs_; }

  std::vector<std::uint8_t> on_tier;
  std::vector<std::int64_t> idle;

 private:
  std::vector<std::int64_t> since_;
  std::int64_t runs_ = 0;
};

}  // namespace

std::int64_t tier_bytes(const Problem& problem, const Plan& plan) {
  const TierUse use(problem, plan);
  std::int64_t bytes = 0;
  for (std::size_t s = 0; s < problem.storages.size(); ++s) {
    if (use.on_tier[s] != 0) bytes += problem.storages[s].size_bytes;
  }
  return bytes;
}

Problem within_tier(const Problem& problem, const Plan& plan) {
  const TierUse use(problem, plan);
  std::vector<std::size_t> ranked;
  for (std::size_t s = 0; s < problem.storages.size(); ++s) {
    if (use.on_tier[s] != 0) ranked.push_back(s);
  }
  const auto frees = [&](std::size_t s) {
    const StorageInfo& storage = problem.storages[s];
    return static_cast<double>(use.idle[s]) * static_cast<double>(storage.footprint_bytes) /
           static_cast<double>(storage.size_bytes);
  };
  // What a given boundary has there stays there; other state cannot be made anew.
  std::vector<int> rank(problem.storages.size(), 0);
  for (const std::size_t s : ranked) rank[s] = problem.storages[s].carried ? 1 : 2;
  for (const Standing& standing : problem.boundary ? *problem.boundary : Boundary{}) {
    if (standing.on_tier) rank[static_cast<std::size_t>(standing.storage)] = 0;
  }
  std::stable_sort(ranked.begin(), ranked.end(), [&](std::size_t a, std::size_t b) {
    return rank[a] != rank[b] ? rank[a] < rank[b] : frees(a) > frees(b);
  });
  Problem limited = problem;
  limited.tier_bytes = kNoLimit;
  for (StorageInfo& storage : limited.storages) storage.swappable = false;
  std::int64_t left_bytes = problem.tier_bytes;
  for (const std::size_t s : ranked) {
    if (problem.storages[s].size_bytes > left_bytes) continue;
    left_bytes -= problem.storages[s].size_bytes;
    limited.storages[s].swappable = true;
  }
  return limited;
}

}  // namespace penstock::plan
