#include "plan/lru_walk.h"

#include <algorithm>

#include "base/error.h"
#include "plan/all_resident.h"

namespace penstock::plan {

LruWalk::LruWalk(const Problem& problem, const std::vector<std::uint8_t>& expensive, const SwapSet* early)
    : problem_(problem),
      expensive_(expensive),
      early_(early),
      evicted_(problem),
      builder_(begin_with_state_resident(problem)),
      stamps_(problem.storages.size(), -1),
      next_access_(problem.storages.size(), 0) {}

void LruWalk::walk() {
  const auto positions = static_cast<Position>(problem_.ops.size());
  for (Position i = 0; i < positions; ++i) {
    bring(i);
    if (expensive_[static_cast<std::size_t>(i)] != 0) prefetch(i);
    builder_.run(i);
    leave(i);
  }
  end_with_state_resident(problem_, builder_);
}

void LruWalk::touch(ir::StorageId s, Position position) {
  const StorageInfo& storage = problem_.storage(s);
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
  const StepOp& info = problem_.ops[static_cast<std::size_t>(position)];
  // What the op uses is locked: it is not in the cache until the op has run.
  for (const Use& use : info.uses) forget(use.storage);
  for (const Use& use : info.uses) {
    if (builder_.mapped(use.storage)) continue;
    make_room(problem_.storage(use.storage).footprint_bytes);
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
  const std::int64_t scratch_bytes = problem_.ops[static_cast<std::size_t>(position)].scratch_bytes[0];
  for (auto i = static_cast<std::size_t>(position) + 1; i < problem_.ops.size(); ++i) {
    for (const Use& use : problem_.ops[i].uses) {
      const StorageInfo& storage = problem_.storage(use.storage);
      const std::uint32_t next = next_access_[static_cast<std::size_t>(use.storage)];
      const bool is_away = !builder_.mapped(use.storage) && next > 0 &&
                           evicted_.contains(use.storage, next - 1) &&
                           storage.accesses[next].position == static_cast<Position>(i);
      if (!is_away || builder_.free_bytes() < storage.footprint_bytes + scratch_bytes) continue;
      builder_.swap_in(use.storage);
      touch(use.storage, position);
    }
    if (expensive_[i] != 0) return;
  }
}

void LruWalk::leave(Position position) {
  for (const Use& use : problem_.ops[static_cast<std::size_t>(position)].uses) {
    const ir::StorageId s = use.storage;
    const StorageInfo& storage = problem_.storage(s);
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

std::int64_t lru_bytes(const Problem& problem) {
  // State and what cannot be swapped weigh on every op while they live.
  std::int64_t state_bytes = 0;
  for (const StorageInfo& storage : problem.storages) {
    if (storage.carried) state_bytes += storage.footprint_bytes;
  }
  std::int64_t needed_bytes = state_bytes;
  std::vector<std::int64_t> fixed(problem.ops.size() + 1, 0);
  for (const StorageInfo& storage : problem.storages) {
    if (storage.carried || storage.swappable || storage.accesses.empty()) continue;
    fixed[static_cast<std::size_t>(storage.accesses.front().position)] += storage.footprint_bytes;
    fixed[static_cast<std::size_t>(storage.accesses.back().position) + 1] -= storage.footprint_bytes;
  }
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    state_bytes += fixed[i];
    std::int64_t op_bytes = state_bytes + problem.ops[i].scratch_bytes[0];
    for (const Use& use : problem.ops[i].uses) {
      const StorageInfo& storage = problem.storage(use.storage);
      if (!storage.carried && storage.swappable) op_bytes += storage.footprint_bytes;
    }
    needed_bytes = std::max(needed_bytes, op_bytes);
  }
  return needed_bytes;
}

}  // namespace penstock::plan
