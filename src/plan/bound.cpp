#include "plan/bound.h"

#include <algorithm>
#include <limits>

#include "base/long_vector.h"
#include "plan/memory_cut.h"
#include "plan/swap_set.h"

namespace penstock::plan {
namespace {

/// Points of the step that are looked at: the neediest of as many equal parts.
constexpr std::size_t kCuts = 12;

/// What a given boundary makes necessary.
double boundary_seconds(const Problem& problem, const LongVector<TierPrice>& tier) {
  if (!problem.boundary) return 0;
  double read_bytes = 0, written_bytes = 0;
  for (const Standing& standing : *problem.boundary) {
    const StorageInfo& storage = problem.storage(standing.storage);
    const bool is_read =
        std::any_of(storage.accesses.begin(), storage.accesses.end(), [&](const Access& access) {
          const auto& inputs = problem.graph->op(access.position).inputs;
          return std::find(inputs.begin(), inputs.end(), storage.begin) != inputs.end();
        });
    if (!standing.resident && is_read) read_bytes += static_cast<double>(storage.size_bytes);
    if (standing.on_tier && storage.begin != storage.end)
      written_bytes += static_cast<double>(storage.size_bytes);
  }
  double seconds = 0;
  for (const TierPrice& price : tier) {
    seconds = std::max(seconds, price.read * read_bytes + price.write * written_bytes);
  }
  return seconds;
}

/// The op that finds most in use in each part of the step; the neediest first.
LongVector<ir::OpId> needy_ops(const Problem& problem) {
  const LongVector<std::int64_t> bytes = base_memory(Step(problem), SwapSet(problem));
  LongVector<ir::OpId> found;
  for (std::size_t part = 0; part < kCuts; ++part) {
    const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() * part / kCuts);
    const auto last = bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() * (part + 1) / kCuts);
    if (first != last) found.push_back(static_cast<ir::OpId>(std::max_element(first, last) - bytes.begin()));
  }
  std::stable_sort(found.begin(), found.end(), [&](ir::OpId a, ir::OpId b) {
    return bytes[static_cast<std::size_t>(a)] > bytes[static_cast<std::size_t>(b)];
  });
  return found;
}

}  // namespace

Bound lower_bound(const Problem& problem, const Profile& profile) {
  Bound bound;
  const LongVector<double> op_seconds = fastest_seconds(profile);
  for (const double seconds : op_seconds) bound.compute_seconds += seconds;
  bound.seconds = bound.compute_seconds;
  const LongVector<TierPrice> tier = tier_prices(profile.tier);
  const double transfers = boundary_seconds(problem, tier);
  if (transfers > bound.seconds) {
    bound.seconds = transfers;
    bound.kind = BoundKind::transfers;
  }
  const Dependencies dependencies(*problem.graph);
  for (const ir::OpId op : needy_ops(problem)) {
    const double seconds = MemoryCut(problem, op_seconds, tier, dependencies, op).bound_seconds();
    if (seconds <= bound.seconds) continue;
    bound.seconds = seconds;
    bound.kind = BoundKind::memory;
    bound.op = op;
  }
  return bound;
}

std::string bound_text(const Problem& problem, const Bound& bound) {
  switch (bound.kind) {
    case BoundKind::compute:
      return "compute alone";
    case BoundKind::transfers:
      return "transfers from and to the given boundary";
    case BoundKind::memory:
      return "memory at op '" + problem.graph->op(bound.op).name + "'";
  }
  return "?";
}

}  // namespace penstock::plan
