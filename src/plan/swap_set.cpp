#include "plan/swap_set.h"

namespace penstock::plan {

LongVector<std::int64_t> base_memory(const Step& step, const SwapSet& swaps) {
  // First as changes from position to position.
  LongVector<std::int64_t> bytes(static_cast<std::size_t>(step.positions()) + 1, 0);
  const Position last_position = step.positions() - 1;
  const auto add = [&](Position first, Position last, std::int64_t added) {
    if (first > last) return;
    bytes[static_cast<std::size_t>(first)] += added;
    bytes[static_cast<std::size_t>(last) + 1] -= added;
  };
  for (std::size_t s = 0; s < step.storages(); ++s) {
    const StorageUses storage = step.storage(static_cast<ir::StorageId>(s));
    if (storage.footprint_bytes == 0) continue;
    if (storage.accesses.empty() && storage.carried) add(0, last_position, storage.footprint_bytes);
    for (std::size_t k = 0; k < storage.accesses.size(); ++k) {
      const Position at = storage.accesses[k].position;
      const bool stays = is_needed_after(storage, k) && !swaps.contains(static_cast<ir::StorageId>(s), k);
      if (!is_wrap(storage, k)) {
        add(at, stays ? storage.accesses[k + 1].position - 1 : at, storage.footprint_bytes);
      } else {
        add(at, stays ? last_position : at, storage.footprint_bytes);
        if (stays) add(0, storage.accesses[0].position - 1, storage.footprint_bytes);
      }
    }
  }
  bytes.pop_back();
  std::int64_t used_bytes = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    used_bytes += bytes[i];
    const auto position = static_cast<Position>(i);
    bytes[i] = used_bytes + step.at(position).scratch_bytes[0];
    for (const Overwrite& pair : step.adopts(position)) {
      bytes[i] -= step.problem().storage(pair.to).footprint_bytes;
    }
  }
  return bytes;
}

}  // namespace penstock::plan
