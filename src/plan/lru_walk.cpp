#include "plan/lru_walk.h"

#include <algorithm>

#include "base/error.h"
#include "base/long_vector.h"
#include "plan/all_resident.h"

namespace penstock::plan {

LruWalk::LruWalk(const Step& step, const LongVector<std::uint8_t>& expensive, const SwapSet* early)
    : step_(step),
      expensive_(expensive),
      early_(early),
      evicted_(step),
      builder_(begin_with_state_resident(step.problem())),
      stamps_(step.storages(), -1),
      next_access_(step.storages(), 0) {}

void LruWalk::walk() {
  for (Position i = 0; i < step_.positions(); ++i) {
    bring(i);
    if (expensive_[static_cast<std::size_t>(i)] != 0) prefetch(i);
    builder_.run(step_.op(i));
    leave(i);
  }
  end_with_state_resident(step_.problem(), builder_);
}

void LruWalk::touch(ir::StorageId s, Position position) {
  const StorageUses storage = step_.storage(s);
  if (storage.carried || !storage.swappable) return;
  forget(s);
  stamps_[static_cast<std::size_t>(s)] = position;
  cached_.emplace(position, s);
}

void LruWalk::forget(ir::StorageId s) {
  Position& stamp = stamps_[static_cast<std::size_t>(s)];
  if (stamp >= 0) cached_.erase({stamp, s});
  stamp = -1;
}

void LruWalk::bring(Position position) {
  const StepOp info = step_.at(position);
  // What the op uses is locked: it is not in the cache until the op has run.
  for (const Use& use : info.uses) forget(use.storage);
  for (const Use& use : info.uses) {
    if (builder_.mapped(use.storage)) continue;
    make_room(step_.storage(use.storage).footprint_bytes);
    if (use.reads) {
      builder_.swap_in(use.storage);
    } else {
      builder_.acquire(use.storage);
    }
  }
  make_room(info.scratch_bytes[0]);
}

/// Reads in what the next expensive op and those before it need, as far as there is room without evicting.
void LruWalk::prefetch(Position position) {
  const std::int64_t scratch_bytes = step_.at(position).scratch_bytes[0];
  for (Position i = position + 1; i < step_.positions(); ++i) {
    for (const Use& use : step_.at(i).uses) {
      const StorageUses storage = step_.storage(use.storage);
      const std::uint32_t next = next_access_[static_cast<std::size_t>(use.storage)];
      const bool is_away = !builder_.mapped(use.storage) && next > 0 &&
                           evicted_.contains(use.storage, next - 1) && storage.accesses[next].position == i;
      if (!is_away || builder_.free_bytes() < storage.footprint_bytes + scratch_bytes) continue;
      builder_.swap_in(use.storage);
      touch(use.storage, position);
    }
    if (expensive_[static_cast<std::size_t>(i)] != 0) return;
  }
}

void LruWalk::leave(Position position) {
  for (const Use& use : step_.at(position).uses) {
    const ir::StorageId s = use.storage;
    const StorageUses storage = step_.storage(s);
    const std::size_t access = next_access_[static_cast<std::size_t>(s)]++;
    if (!is_needed_after(storage, access)) {
      if (builder_.pending(s) != Transfer::none) builder_.wait(s);
      builder_.release(s);
      continue;
    }
    if (storage.carried) continue;
    touch(s, position);
    const bool writes = early_ != nullptr && early_->contains(s, access) && !builder_.clean(s);
    if (writes && builder_.pending(s) == Transfer::none) builder_.swap_out(s);
  }
}

void LruWalk::make_room(std::int64_t bytes) {
  while (builder_.free_bytes() < bytes) {
    require(!cached_.empty(), "lru walk: nothing is left to evict");
    evict(cached_.begin()->second);
  }
}

void LruWalk::evict(ir::StorageId s) {
  forget(s);
  evicted_.set(s, next_access_[static_cast<std::size_t>(s)] - 1, 1);
  if (builder_.pending(s) == Transfer::none && !builder_.clean(s)) builder_.swap_out(s);
  if (builder_.pending(s) != Transfer::none) builder_.wait(s);
  builder_.release(s);
}

std::int64_t lru_bytes(const Step& step) {
  // State and what cannot be swapped weigh on every op while they live.
  std::int64_t state_bytes = 0;
  LongVector<std::int64_t> fixed(static_cast<std::size_t>(step.positions()) + 1, 0);
  for (std::size_t s = 0; s < step.storages(); ++s) {
    const StorageUses storage = step.storage(static_cast<ir::StorageId>(s));
    if (storage.carried) state_bytes += storage.footprint_bytes;
    if (storage.carried || storage.swappable || storage.accesses.empty()) continue;
    fixed[static_cast<std::size_t>(storage.accesses.front().position)] += storage.footprint_bytes;
    fixed[static_cast<std::size_t>(storage.accesses.back().position) + 1] -= storage.footprint_bytes;
  }
  std::int64_t needed_bytes = state_bytes;
  for (Position p = 0; p < step.positions(); ++p) {
    state_bytes += fixed[static_cast<std::size_t>(p)];
    std::int64_t op_bytes = state_bytes + step.at(p).scratch_bytes[0];
    for (const Use& use : step.at(p).uses) {
      const StorageInfo& storage = step.problem().storage(use.storage);
      if (!storage.carried && storage.swappable) op_bytes += storage.footprint_bytes;
    }
    needed_bytes = std::max(needed_bytes, op_bytes);
  }
  return needed_bytes;
}

}  // namespace penstock::plan
