#include "plan/retire_queue.h"

#include <algorithm>

#include "base/error.h"

namespace penstock::plan {
namespace {

constexpr std::int64_t kTouchedPerByteWritten = 4;

}  // namespace

void RetireQueue::drop_stale() {
  while (!entries_.empty() &&
         ids_[static_cast<std::size_t>(entries_.front().storage)] != entries_.front().id) {
    entries_.pop_front();
  }
}

bool RetireQueue::empty() {
  drop_stale();
  return entries_.empty();
}

ir::StorageId RetireQueue::front() {
  require(!empty(), "retire queue: it is empty");
  return entries_.front().storage;
}

void RetireQueue::add_as_is(ir::StorageId s) {
  require(!contains(s), "retire queue: the storage is in it already");
  ids_[static_cast<std::size_t>(s)] = ++last_id_;
  entries_.push_back({s, last_id_, clock_});
  bytes_ += problem_.storage(s).footprint_bytes;
}

void RetireQueue::add(ir::StorageId s) {
  add_as_is(s);
  write(entries_.back());
}

void RetireQueue::write(Entry& entry) {
  if (builder_.clean(entry.storage)) return;
  builder_.swap_out(entry.storage);
  lane_free_at_ =
      std::max(lane_free_at_, clock_) + kTouchedPerByteWritten * problem_.storage(entry.storage).size_bytes;
  entry.settled_at = lane_free_at_;
}

void RetireQueue::write_all() {
  for (Entry& entry : entries_) {
    if (ids_[static_cast<std::size_t>(entry.storage)] == entry.id) write(entry);
  }
}

void RetireQueue::recall(ir::StorageId s) {
  ids_[static_cast<std::size_t>(s)] = 0;
  bytes_ -= problem_.storage(s).footprint_bytes;
  if (builder_.pending(s) == Transfer::write && builder_.can_cancel(s)) builder_.cancel(s);
}

bool RetireQueue::front_settled() {
  const ir::StorageId s = front();
  return builder_.clean(s) && clock_ >= entries_.front().settled_at;
}

void RetireQueue::pop() {
  const ir::StorageId s = front();
  write(entries_.front());
  ids_[static_cast<std::size_t>(s)] = 0;
  entries_.pop_front();
  bytes_ -= problem_.storage(s).footprint_bytes;
  if (builder_.pending(s) != Transfer::none) builder_.wait(s);
  builder_.release(s);
}

}  // namespace penstock::plan
