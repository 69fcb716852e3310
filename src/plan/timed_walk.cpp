#include "plan/timed_walk.h"

#include <algorithm>

#include "base/error.h"
#include "base/long_vector.h"

namespace penstock::plan {

TimedWalk::TimedWalk(const Step& step, const Profile& profile, const SwapSet& swaps,
                     LongVector<AtBoundary> boundary, WriteStart write_start)
    : step_(step),
      problem_(step.problem()),
      profile_(profile),
      swaps_(swaps),
      boundary_(std::move(boundary)),
      state_(problem_.state()),
      write_start_(write_start),
      positions_(step.positions()),
      builder_(problem_, start()),
      lanes_(profile.tier, problem_.storages.size()),
      link_(*problem_.graph, profile.link),
      memory_(static_cast<std::size_t>(closed() ? positions_ + 1 : 2 * positions_)),
      is_retired_(problem_.storages.size(), 0),
      next_access_(problem_.storages.size(), 0) {}

AtBoundary TimedWalk::at_boundary(ir::StorageId s) const {
  if (closed()) return boundary_[static_cast<std::size_t>(s)];
  const std::size_t uses = step_.accesses(s).size();
  return uses > 0 && swaps_.contains(s, uses - 1) ? AtBoundary::away : AtBoundary::kept;
}

Boundary TimedWalk::start() const {
  Boundary standings;
  for (const ir::StorageId s : state_) {
    switch (at_boundary(s)) {
      case AtBoundary::away:
        standings.push_back({s, false, true, Transfer::none});
        break;
      case AtBoundary::kept:
        standings.push_back({s, true, false, Transfer::none});
        break;
      case AtBoundary::prefetched:
        standings.push_back({s, true, true, Transfer::read});
        break;
      case AtBoundary::retiring:
        standings.push_back({s, true, true, Transfer::write});
        break;
    }
  }
  return standings;
}

/// Fills the curve; false if it exceeds the budget. Behind the step lies the boundary, or the next step.
bool TimedWalk::add_memory() {
  const LongVector<std::int64_t> base = base_memory(step_, swaps_);
  memory_.add_all(base);
  if (!closed()) {
    memory_.add_all(base, positions_);
    return memory_.max(0, 2 * positions_ - 1) <= problem_.budget_bytes;
  }
  for (const ir::StorageId s : state_) {
    const std::span<const Access> accesses = step_.accesses(s);
    switch (at_boundary(s)) {
      case AtBoundary::away:
        break;
      case AtBoundary::kept:
        memory_.add(positions_, positions_, footprint(s));
        break;
      case AtBoundary::prefetched:
        memory_.add(0, accesses.front().position - 1, footprint(s));
        break;
      case AtBoundary::retiring:
        memory_.add(accesses.back().position + 1, positions_, footprint(s));
        break;
    }
  }
  return memory_.max(0, positions_) <= problem_.budget_bytes;
}

/// Puts transfers that cross the boundary under way, and asks for what the step needs first.
void TimedWalk::begin() {
  for (const ir::StorageId s : state_) {
    const StorageUses storage = step_.storage(s);
    if (storage.accesses.empty()) continue;
    const Position first_use = storage.accesses.front().position;
    switch (at_boundary(s)) {
      case AtBoundary::kept:
        break;
      case AtBoundary::away:
        demands_.emplace(first_use, s);
        break;
      case AtBoundary::prefetched:
        lanes_.start(s, false, storage.size_bytes, 0);
        break;
      case AtBoundary::retiring:
        lanes_.start(s, true, storage.size_bytes, 0);
        retired_.push_back(s);
        is_retired_[static_cast<std::size_t>(s)] = 1;
        demands_.emplace(first_use, s);
        break;
    }
  }
}

bool TimedWalk::walk() {
  if (!add_memory()) return false;
  begin();
  for (Position i = 0; i < positions_; ++i) {
    bring(i);
    prefetch(i);
    run(i);
    for (const Use& use : step_.at(i).uses) leave(use);
  }
  if (closed()) finish_boundary();
  return true;
}

void TimedWalk::release_retired(std::size_t index) {
  const ir::StorageId s = retired_[index];
  retired_.erase(retired_.begin() + static_cast<std::ptrdiff_t>(index));
  is_retired_[static_cast<std::size_t>(s)] = 0;
  if (builder_.pending(s) != Transfer::none) {
    now_seconds_ = std::max(now_seconds_, lanes_.wait(s, now_seconds_));
    builder_.wait(s);
  }
  builder_.release(s);
}

bool TimedWalk::make_room(std::int64_t bytes, bool may_wait) {
  // Copy-outs end in the order in which they began, but for clean data there is nothing to wait for.
  for (std::size_t i = 0; i < retired_.size() && builder_.free_bytes() < bytes;) {
    const ir::StorageId s = retired_[i];
    if (builder_.pending(s) == Transfer::none || lanes_.is_done(s, now_seconds_)) {
      release_retired(i);
    } else if (++i >= 64) {
      break;
    }
  }
  while (may_wait && builder_.free_bytes() < bytes && !retired_.empty()) release_retired(0);
  return builder_.free_bytes() >= bytes;
}

void TimedWalk::recall(ir::StorageId s, bool may_cancel) {
  retired_.erase(std::find(retired_.begin(), retired_.end(), s));
  is_retired_[static_cast<std::size_t>(s)] = 0;
  if (may_cancel && builder_.pending(s) == Transfer::write && builder_.can_cancel(s) &&
      lanes_.cancel(s, now_seconds_)) {
    builder_.cancel(s);
  }
}

/// Makes sure that what the op at this position uses has memory.
void TimedWalk::bring(Position position) {
  const auto& uses = step_.at(position).uses;
  const std::span<const Overwrite> adopts = step_.adopts(position);
  const auto adopts_memory = [&](ir::StorageId s) {
    return std::any_of(adopts.begin(), adopts.end(), [&](const Overwrite& pair) { return pair.to == s; });
  };
  for (const Use& use : uses) {
    if (use.reads) demands_.erase({position, use.storage});
    if (adopts_memory(use.storage) && is_retired_[static_cast<std::size_t>(use.storage)] != 0) {
      release_retired(static_cast<std::size_t>(std::find(retired_.begin(), retired_.end(), use.storage) -
                                               retired_.begin()));
    }
    if (is_retired_[static_cast<std::size_t>(use.storage)] != 0) recall(use.storage, true);
  }
  for (const Use& use : uses) {
    const ir::StorageId s = use.storage;
    if (builder_.mapped(s) || adopts_memory(s)) continue;
    require(make_room(footprint(s), true), "timed walk: memory that was kept free is taken");
    if (use.reads) {
      lanes_.start(s, false, problem_.storage(s).size_bytes, now_seconds_);
      builder_.swap_in(s);
    } else {
      builder_.acquire(s);
    }
  }
}

void TimedWalk::prefetch(Position position) {
  while (!demands_.empty()) {
    const auto [deadline, s] = *demands_.begin();
    if (!try_prefetch(position, deadline, s)) return;
    demands_.erase(demands_.begin());
  }
}

bool TimedWalk::try_prefetch(Position position, Position deadline, ir::StorageId s) {
  // At the boundary it must be there as well, but what crosses it is waited for only by its next use.
  const bool for_boundary = closed() && deadline == positions_;
  const std::int64_t last = for_boundary ? deadline : deadline - 1;
  if (memory_.max(position, last) + footprint(s) > problem_.budget_bytes) return false;
  const std::int64_t scratch_bytes = step_.at(position).scratch_bytes[0];
  if (is_retired_[static_cast<std::size_t>(s)] != 0) {
    recall(s, !for_boundary);
  } else {
    if (!make_room(footprint(s) + scratch_bytes, false)) return false;
    lanes_.start(s, false, problem_.storage(s).size_bytes, now_seconds_);
    builder_.swap_in(s);
  }
  memory_.add(position, last, footprint(s));
  return true;
}

void TimedWalk::run(Position position) {
  const StepOp info = step_.at(position);
  require(make_room(info.scratch_bytes[0], true), "timed walk: memory that was kept free is taken");
  for (const Use& use : info.uses) {
    const Transfer pending = builder_.pending(use.storage);
    if (pending == Transfer::read || (pending == Transfer::write && use.writes)) {
      now_seconds_ = lanes_.wait(use.storage, now_seconds_);
      builder_.wait(use.storage);
    }
  }
  for (const Overwrite& pair : step_.adopts(position)) {
    if (builder_.pending(pair.from) == Transfer::none) continue;
    now_seconds_ = lanes_.wait(pair.from, now_seconds_);
    builder_.wait(pair.from);
  }
  for (const Overwrite& pair : step_.adopts(position)) builder_.adopt(pair);
  const ir::OpId op = step_.op(position);
  builder_.run(op);
  now_seconds_ = std::max(now_seconds_, link_.ready_seconds(op)) + profile_.seconds(op);
  link_.start(op, now_seconds_);
}

void TimedWalk::write(ir::StorageId s) {
  if (builder_.clean(s)) return;
  lanes_.start(s, true, problem_.storage(s).size_bytes, now_seconds_);
  builder_.swap_out(s);
}

void TimedWalk::retire(ir::StorageId s) {
  retired_.push_back(s);
  is_retired_[static_cast<std::size_t>(s)] = 1;
}

/// Whether the value of this use goes to the tier after a later use that only reads it.
bool TimedWalk::is_swapped_later(const StorageUses& storage, ir::StorageId s, std::size_t access) const {
  for (std::size_t k = access + 1; k < storage.accesses.size() && !storage.accesses[k].writes; ++k) {
    if (swaps_.contains(s, k)) return is_needed_after(storage, k);
  }
  return false;
}

void TimedWalk::leave(const Use& use) {
  const ir::StorageId s = use.storage;
  const StorageUses storage = step_.storage(s);
  const std::size_t access = next_access_[static_cast<std::size_t>(s)]++;
  if (!is_needed_after(storage, access)) {
    if (!builder_.mapped(s)) return;  // written over
    if (builder_.pending(s) == Transfer::none) {
      builder_.release(s);
    } else {
      retire(s);
    }
    return;
  }
  if (!swaps_.contains(s, access)) {
    const bool early = write_start_ == WriteStart::at_birth && builder_.pending(s) == Transfer::none;
    if (early && is_swapped_later(storage, s, access)) write(s);
    return;
  }
  if (builder_.pending(s) == Transfer::none) write(s);
  if (!is_wrap(storage, access)) {
    retire(s);
    demands_.emplace(storage.accesses[access + 1].position, s);
    return;
  }
  if (closed() && at_boundary(s) == AtBoundary::retiring) return;
  retire(s);
  if (!closed()) demands_.emplace(positions_ + storage.accesses.front().position, s);
  if (closed() && at_boundary(s) == AtBoundary::prefetched) demands_.emplace(positions_, s);
}

void TimedWalk::finish_boundary() {
  for (const auto& [deadline, s] : demands_) {
    if (is_retired_[static_cast<std::size_t>(s)] != 0) {
      recall(s, false);
    } else {
      require(make_room(footprint(s), true), "timed walk: memory that was kept free is taken");
      builder_.swap_in(s);
    }
  }
  for (const ir::StorageId s : state_) {
    if (at_boundary(s) == AtBoundary::prefetched && builder_.pending(s) == Transfer::write) builder_.wait(s);
  }
  while (!retired_.empty()) release_retired(0);
}

LongVector<AtBoundary> TimedWalk::end() const {
  LongVector<AtBoundary> kinds(problem_.storages.size(), AtBoundary::away);
  for (const ir::StorageId s : state_) {
    const std::size_t uses = step_.accesses(s).size();
    AtBoundary& kind = kinds[static_cast<std::size_t>(s)];
    if (uses == 0 || !swaps_.contains(s, uses - 1)) {
      kind = AtBoundary::kept;
    } else if (is_retired_[static_cast<std::size_t>(s)] != 0 || builder_.pending(s) == Transfer::write) {
      kind = AtBoundary::retiring;
    } else if (builder_.mapped(s)) {
      kind = AtBoundary::prefetched;
    }
  }
  return kinds;
}

}  // namespace penstock::plan
