#include "plan/swap_set.h"

#include "plan/memory_curve.h"

namespace penstock::plan {

bool is_needed_after(const StorageInfo& storage, std::size_t access) {
  return is_wrap(storage, access) ? storage.carried : storage.accesses[access + 1].reads;
}

void add_base_memory(const Problem& problem, const SwapSet& swaps, MemoryCurve& curve, std::int64_t offset) {
  const auto last_position = static_cast<std::int64_t>(problem.ops.size()) - 1;
  const auto add = [&](std::int64_t first, std::int64_t last, std::int64_t bytes) {
    if (bytes > 0) curve.add(offset + first, offset + last, bytes);
  };
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    add(static_cast<std::int64_t>(i), static_cast<std::int64_t>(i), problem.ops[i].scratch_bytes[0]);
  }
  for (std::size_t s = 0; s < problem.storages.size(); ++s) {
    const StorageInfo& storage = problem.storages[s];
    if (storage.accesses.empty() && storage.carried) add(0, last_position, storage.footprint_bytes);
    for (std::size_t k = 0; k < storage.accesses.size(); ++k) {
      const std::int64_t at = storage.accesses[k].op;
      const bool stays = is_needed_after(storage, k) && !swaps.contains(static_cast<ir::StorageId>(s), k);
      if (!is_wrap(storage, k)) {
        add(at, stays ? storage.accesses[k + 1].op - 1 : at, storage.footprint_bytes);
      } else {
        add(at, stays ? last_position : at, storage.footprint_bytes);
        if (stays) add(0, storage.accesses[0].op - 1, storage.footprint_bytes);
      }
    }
  }
}

}  // namespace penstock::plan
