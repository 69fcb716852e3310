#include "plan/window_walk.h"

#include <algorithm>
#include <utility>

#include "base/long_vector.h"
#include "plan/budget_error.h"
#include "plan/policies.h"

namespace penstock::plan {
namespace {

constexpr Position kUsesPerTry = 64;

}  // namespace

WindowWalk::WindowWalk(const Problem& problem, std::int64_t window_bytes, const Boundary& start,
                       const Boundary* end)
    : problem_(problem),
      window_limit_bytes_(window_bytes),
      ops_(static_cast<Position>(problem.ops.size())),
      end_(end),
      builder_(problem, start),
      retired_(problem, builder_),
      marks_(problem.storages.size()),
      ahead_(2 * problem.ops.size() + 1) {
  if (end != nullptr) {
    for (const Standing& standing : *end) {
      if (standing.resident) boundary_uses_.push_back({standing.storage, true, false});
    }
  }
  retire_start(start);
}

PlanBuilder WindowWalk::walk(bool exact) {
  for (tail_ = 0; tail_ < ops_; ++tail_) {
    ensure();
    advance_head();
    if (tail_ == 0) retired_.write_all();
    builder_.run(tail_);
    leave();
  }
  if (end_ != nullptr) finish(exact);
  return std::move(builder_);
}

std::span<const Use> WindowWalk::uses_at(Position position) const {
  if (end_ != nullptr && position == ops_) return boundary_uses_;
  return problem_.ops[static_cast<std::size_t>(position % ops_)].uses;
}

std::int64_t WindowWalk::scratch_at(Position position) const {
  if (end_ != nullptr && position == ops_) return 0;
  return problem_.ops[static_cast<std::size_t>(position % ops_)].scratch_bytes[0];
}

/// Beyond this step only state counts: all else begins anew there.
bool WindowWalk::counts(Position position, const Use& use) const {
  return position < ops_ || problem_.storage(use.storage).carried;
}

bool WindowWalk::is_used_at(Position position, ir::StorageId s) const {
  const auto& uses = uses_at(position);
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return use.storage == s; });
}

/// Whether anybody reads what the storage holds after its `access`-th use of the step.
bool WindowWalk::value_needed_after(ir::StorageId s, std::uint32_t access) const {
  const StorageInfo& storage = problem_.storage(s);
  return access + 1 >= storage.accesses.size() ? storage.carried : storage.accesses[access + 1].reads;
}

/// All that is resident when the step begins; what is used last goes first.
void WindowWalk::retire_start(const Boundary& start) {
  LongVector<std::pair<Position, ir::StorageId>> resident;
  for (const Standing& standing : start) {
    if (!standing.resident) continue;
    const StorageInfo& storage = problem_.storage(standing.storage);
    if (storage.swappable) {
      resident.emplace_back(storage.accesses.empty() ? ops_ : storage.accesses.front().position,
                            standing.storage);
    } else {
      mark(standing.storage).ahead = true;
      ahead_.add_from(0, storage.footprint_bytes);
    }
  }
  std::stable_sort(resident.begin(), resident.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [first_use, s] : resident) retired_.add_as_is(s);
}

/// Puts the op at the head into the window. There is room for what it needs, unless it is at the tail, where
/// ensure() sees to that.
void WindowWalk::include(bool at_tail) {
  const Position position = head_++;
  ahead_.add(position, position, scratch_at(position));
  for (const Use& use : uses_at(position)) {
    if (!counts(position, use)) continue;
    const ir::StorageId s = use.storage;
    Mark& m = mark(s);
    if (m.in_window++ == 0) window_bytes_ += footprint(s);
    if (!m.ahead) {
      m.ahead = true;
      if (retired_.contains(s)) {
        retired_.recall(s);
        ahead_.add_from(tail_, footprint(s));
      } else if (use.reads && !at_tail) {
        builder_.swap_in(s);
        ahead_.add_from(tail_, footprint(s));
      } else {
        reserved_.emplace_back(position, s);
        ahead_.add_from(position, footprint(s));
      }
    }
    if (position < ops_ && !value_needed_after(s, m.head_access++)) {
      m.ahead = false;
      ahead_.add_from(position + 1, -footprint(s));
    }
  }
}

/// Takes the furthest op out of the window again, and with it the prefetches that only it needs.
void WindowWalk::retreat_head() {
  const Position position = --head_;
  ahead_.add(position, position, -scratch_at(position));
  for (const Use& use : uses_at(position)) {
    if (!counts(position, use)) continue;
    const ir::StorageId s = use.storage;
    Mark& m = mark(s);
    if (position < ops_ && !value_needed_after(s, --m.head_access)) {
      m.ahead = true;
      ahead_.add_from(position + 1, footprint(s));
    }
    if (--m.in_window == 0) window_bytes_ -= footprint(s);
    if (builder_.mapped(s) && m.in_window == 0 && problem_.storage(s).swappable) {
      m.ahead = false;
      ahead_.add_from(tail_, -footprint(s));
      if (builder_.pending(s) == Transfer::read && builder_.can_cancel(s)) {
        builder_.cancel(s);
      } else {
        if (builder_.pending(s) == Transfer::read) builder_.wait(s);
        retired_.add(s);
      }
    }
  }
  for (; !reserved_.empty() && reserved_.back().first == position; reserved_.pop_back()) {
    const ir::StorageId s = reserved_.back().second;
    mark(s).ahead = false;
    ahead_.add_from(position, -footprint(s));
  }
}

void WindowWalk::advance_head() {
  while (head_ <= last_position() && head_ < tail_ + ops_) {
    // The boundary may use thousands of storages: what did not fit is not looked at anew for every op.
    const bool at_boundary = end_ != nullptr && head_ == ops_;
    if (at_boundary && tail_ < boundary_next_try_) return;
    if (at_boundary) {
      boundary_next_try_ = tail_ + static_cast<Position>(boundary_uses_.size()) / kUsesPerTry;
    }
    std::int64_t window_bytes = window_bytes_;
    for (const Use& use : uses_at(head_)) {
      if (counts(head_, use) && mark(use.storage).in_window == 0) window_bytes += footprint(use.storage);
    }
    if (window_bytes > window_limit_bytes_ || !make_room_for_head()) return;
    include(false);
  }
}

/// Releases retired storages that are written by now, until the head's op fits into the window; false if it
/// does not.
bool WindowWalk::make_room_for_head() {
  // What is read takes memory from now on, what is written only when the op runs.
  std::int64_t read_bytes = 0, recalled_bytes = 0, written_bytes = scratch_at(head_);
  for (const Use& use : uses_at(head_)) {
    if (!counts(head_, use) || mark(use.storage).ahead) continue;
    if (retired_.contains(use.storage)) {
      recalled_bytes += footprint(use.storage);
    } else {
      (use.reads ? read_bytes : written_bytes) += footprint(use.storage);
    }
  }
  const std::int64_t from_now_bytes = read_bytes + recalled_bytes;
  if (ahead_.at(head_) + from_now_bytes + written_bytes > problem_.budget_bytes) return false;
  if (from_now_bytes == 0) return true;
  const std::int64_t before_bytes = ahead_.max(tail_, head_ - 1);
  if (before_bytes + from_now_bytes > problem_.budget_bytes) return false;
  if (read_bytes == 0) return true;
  while (before_bytes + read_bytes + retired_.bytes() > problem_.budget_bytes) {
    if (retired_.empty() || !retired_.front_settled() || is_used_at(head_, retired_.front())) return false;
    retired_.pop();
  }
  return true;
}

/// Brings what the op at the tail uses into memory, whatever must go for it.
void WindowWalk::ensure() {
  if (head_ <= tail_) include(true);
  std::int64_t missing_bytes = scratch_at(tail_);
  for (const Use& use : uses_at(tail_)) {
    if (!builder_.mapped(use.storage)) missing_bytes += footprint(use.storage);
  }
  while (builder_.free_bytes() < missing_bytes) {
    if (!retired_.empty()) {
      retired_.pop();
    } else if (head_ > tail_ + 1) {
      retreat_head();
    } else {
      throw BudgetError("window", smallest_bytes(problem_), problem_.budget_bytes);
    }
  }
  for (const Use& use : uses_at(tail_)) {
    if (builder_.mapped(use.storage)) continue;
    if (use.reads) {
      builder_.swap_in(use.storage);
    } else {
      builder_.acquire(use.storage);
    }
  }
}

/// After the op at the tail: what is dead goes, what is used beyond the window retires.
void WindowWalk::leave() {
  retired_.pass(problem_.ops[static_cast<std::size_t>(tail_)].need_bytes);
  for (const Use& use : uses_at(tail_)) {
    const ir::StorageId s = use.storage;
    Mark& m = mark(s);
    if (--m.in_window == 0) window_bytes_ -= footprint(s);
    if (!value_needed_after(s, m.next_access++)) {
      discard(s);
    } else if (m.in_window == 0 && problem_.storage(s).swappable) {
      m.ahead = false;
      ahead_.add_from(tail_ + 1, -footprint(s));
      retired_.add(s);
    }
  }
}

void WindowWalk::discard(ir::StorageId s) {
  if (builder_.pending(s) == Transfer::write && builder_.can_cancel(s)) builder_.cancel(s);
  if (builder_.pending(s) != Transfer::none) builder_.wait(s);
  builder_.release(s);
}

void WindowWalk::finish(bool exact) {
  ensure();
  for (const Standing& standing : *end_) {
    const ir::StorageId s = standing.storage;
    if (!standing.resident || !exact) continue;
    if (builder_.pending(s) != Transfer::none && builder_.pending(s) != standing.pending) builder_.wait(s);
    if (standing.on_tier && !builder_.clean(s)) builder_.swap_out(s);
    if (builder_.pending(s) != Transfer::none && builder_.pending(s) != standing.pending) builder_.wait(s);
  }
  while (!retired_.empty()) retired_.pop();
}

}  // namespace penstock::plan
