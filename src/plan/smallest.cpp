#include <algorithm>

#include "base/long_vector.h"
#include "plan/policies.h"

namespace penstock::plan {

std::int64_t smallest_bytes(const Problem& problem) {
  // What cannot be swapped weighs on every op while it lives, state always.
  std::int64_t pinned_bytes = 0;
  LongVector<std::int64_t> change_bytes(problem.ops.size() + 1, 0);
  for (const StorageInfo& storage : problem.storages) {
    if (storage.swappable) continue;
    if (storage.carried) {
      pinned_bytes += storage.footprint_bytes;
    } else if (!storage.accesses.empty()) {
      change_bytes[static_cast<std::size_t>(storage.accesses.front().position)] += storage.footprint_bytes;
      change_bytes[static_cast<std::size_t>(storage.accesses.back().position) + 1] -= storage.footprint_bytes;
    }
  }
  std::int64_t needed_bytes = pinned_bytes;
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    pinned_bytes += change_bytes[i];
    std::int64_t op_bytes = pinned_bytes + problem.ops[i].scratch_bytes[0];
    for (const Use& use : problem.ops[i].uses) {
      const StorageInfo& storage = problem.storage(use.storage);
      if (storage.swappable) op_bytes += storage.footprint_bytes;
    }
    needed_bytes = std::max(needed_bytes, op_bytes);
  }
  std::int64_t boundary_bytes = 0;
  for (const Standing& standing : problem.boundary ? *problem.boundary : Boundary{}) {
    if (standing.resident) boundary_bytes += problem.storage(standing.storage).footprint_bytes;
  }
  return std::max(needed_bytes, boundary_bytes);
}

}  // namespace penstock::plan
