#include "tier/transfer_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kMaxAttempts = 100;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool is_passing(std::int64_t result) {
  return result == -EINTR || result == -EAGAIN || result == -EBUSY;
}

}  // namespace

TransferQueue::TransferQueue(TierExtents extents, std::int64_t piece_bytes)
    : extents_(std::move(extents)),
      piece_bytes_(piece_bytes),
      last_on_extent_(static_cast<std::size_t>(extents_.count()), 0) {
  require(piece_bytes > 0 && piece_bytes % kTierAlignment == 0, "a piece is a whole number of pages");
}

void TransferQueue::place(std::span<const std::int64_t> offsets) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < last_on_extent_.size() && i < offsets.size(); ++i) {
    const bool moves = offsets[i] != extents_.offset_bytes(static_cast<int>(i));
    require(!moves || last_on_extent_[i] == 0, "an extent is moved while a request on it is under way");
  }
  extents_.place(offsets);
}

Ticket TransferQueue::push(bool is_write, int extent, void* data, Priority priority) {
  require(reinterpret_cast<std::uintptr_t>(data) % kTierAlignment == 0, "a tier's buffer starts on a page");
  const std::int64_t padded_bytes = extents_.padded_bytes(extent);
  require(padded_bytes == 0 || extents_.offset_bytes(extent) >= 0, "the extent has no place on the tier");
  const std::lock_guard lock(mutex_);
  const Ticket ticket = ++last_ticket_;
  (is_write ? stats_.writes : stats_.reads) += 1;
  if (padded_bytes == 0) return ticket;
  Ticket& last = last_on_extent_[static_cast<std::size_t>(extent)];
  Request request{
      extent, is_write, priority == Priority::urgent, static_cast<std::byte*>(data), 0, padded_bytes,
      last,   0};
  if (last != 0) open_.at(last).next = ticket;
  last = ticket;
  Request& stored = open_.emplace(ticket, request).first->second;
  if (stored.previous == 0) {
    enqueue(ticket, stored);
  } else if (stored.urgent) {
    make_urgent(stored.previous);
  }
  return ticket;
}

void TransferQueue::enqueue(Ticket ticket, Request& request) {
  Lane& in = lane(request.is_write);
  (request.urgent ? in.urgent : in.normal).push_back(ticket);
  work_.notify_all();
}

void TransferQueue::make_urgent(Ticket ticket) {
  for (auto found = open_.find(ticket); found != open_.end(); found = open_.find(found->second.previous)) {
    Request& request = found->second;
    if (request.urgent) continue;
    request.urgent = true;
    // Its place in the normal line stays and is skipped there.
    const bool waiting = request.previous == 0 && request.taken_bytes < extents_.padded_bytes(request.extent);
    if (waiting) lane(request.is_write).urgent.push_back(found->first);
  }
}

void TransferQueue::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  require(ticket <= last_ticket_, "no such ticket");
  if (error_.empty() && open_.contains(ticket)) {
    const Clock::time_point start = Clock::now();
    make_urgent(ticket);
    work_.notify_all();
    finished_.wait(lock, [&] { return !error_.empty() || stopped_ || !open_.contains(ticket); });
    stats_.stalls += 1;
    stats_.stall_seconds += seconds_since(start);
  }
  throw_error();
}

bool TransferQueue::done(Ticket ticket) const {
  const std::lock_guard lock(mutex_);
  return !error_.empty() || !open_.contains(ticket);
}

TierStats TransferQueue::stats() const {
  const std::lock_guard lock(mutex_);
  TierStats result = stats_;
  const auto busy = [](const Lane& in) {
    return in.busy_seconds + (in.pieces_under_way > 0 ? seconds_since(in.busy_since) : 0);
  };
  result.read_seconds = busy(lanes_[0]);
  result.write_seconds = busy(lanes_[1]);
  return result;
}

void TransferQueue::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  work_.notify_all();
  finished_.notify_all();
}

std::optional<Piece> TransferQueue::take() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (auto piece = next_piece()) return piece;
    work_.wait(lock);
  }
  return std::nullopt;
}

std::optional<Piece> TransferQueue::try_take() {
  const std::lock_guard lock(mutex_);
  return stopped_ ? std::nullopt : next_piece();
}

std::deque<Ticket>* TransferQueue::next_line() {
  for (Lane& in : lanes_) {
    // What was made urgent is listed in both lines.
    const auto stale = [&](Ticket ticket, bool urgent) {
      const auto found = open_.find(ticket);
      return found == open_.end() || found->second.urgent != urgent ||
             found->second.taken_bytes == extents_.padded_bytes(found->second.extent);
    };
    while (!in.urgent.empty() && stale(in.urgent.front(), true)) in.urgent.pop_front();
    while (!in.normal.empty() && stale(in.normal.front(), false)) in.normal.pop_front();
  }
  Lane& reads = lanes_[0];
  Lane& writes = lanes_[1];
  if (!reads.urgent.empty()) return &reads.urgent;
  if (!writes.urgent.empty()) return &writes.urgent;
  if (reads.normal.empty() && writes.normal.empty()) return nullptr;
  if (reads.normal.empty()) return &writes.normal;
  if (writes.normal.empty()) return &reads.normal;
  return reads.bytes_under_way <= writes.bytes_under_way ? &reads.normal : &writes.normal;
}

std::optional<Piece> TransferQueue::next_piece() {
  if (!error_.empty()) return std::nullopt;
  if (!again_.empty()) {
    const Piece piece = again_.front();
    again_.pop_front();
    account_taken(piece);
    return piece;
  }
  std::deque<Ticket>* line = next_line();
  if (line == nullptr) return std::nullopt;
  const Ticket ticket = line->front();
  Request& request = open_.at(ticket);
  const std::int64_t padded_bytes = extents_.padded_bytes(request.extent);
  const Piece piece{ticket,
                    request.is_write,
                    request.data + request.taken_bytes,
                    std::min(piece_bytes_, padded_bytes - request.taken_bytes),
                    extents_.offset_bytes(request.extent) + request.taken_bytes,
                    0};
  request.taken_bytes += piece.size_bytes;
  if (request.taken_bytes == padded_bytes) line->pop_front();
  account_taken(piece);
  return piece;
}

void TransferQueue::account_taken(const Piece& piece) {
  Lane& in = lane(piece.is_write);
  if (in.pieces_under_way++ == 0) in.busy_since = Clock::now();
  in.bytes_under_way += piece.size_bytes;
}

void TransferQueue::account_completed(const Piece& piece) {
  Lane& in = lane(piece.is_write);
  if (--in.pieces_under_way == 0) in.busy_seconds += seconds_since(in.busy_since);
  in.bytes_under_way -= piece.size_bytes;
}

void TransferQueue::complete(Piece piece, std::int64_t result) {
  if (result == -EAGAIN || result == -EBUSY) {
    // The kernel lacks something for a moment: give it that moment.
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(piece.attempts, 20)));
  }
  const std::lock_guard lock(mutex_);
  account_completed(piece);
  if (!error_.empty()) return;
  if (result < 0 && !is_passing(result)) return fail(piece, std::strerror(static_cast<int>(-result)));
  if (result == 0 && !piece.is_write) return fail(piece, "the file ends too early");
  // Direct I/O goes on at a page: what was moved of the last one is moved again.
  const std::int64_t moved = result >= piece.size_bytes
                                 ? piece.size_bytes
                                 : std::max<std::int64_t>(result, 0) / kTierAlignment * kTierAlignment;
  (piece.is_write ? stats_.written_bytes : stats_.read_bytes) += moved;
  const Ticket ticket = piece.ticket;
  if (moved < piece.size_bytes) {
    piece.attempts = moved > 0 ? 0 : piece.attempts + 1;
    if (piece.attempts > kMaxAttempts) return fail(piece, "no progress after many attempts");
    piece.data += moved;
    piece.offset_bytes += moved;
    piece.size_bytes -= moved;
    again_.push_back(piece);
    work_.notify_one();
  }
  Request& request = open_.at(ticket);
  request.left_bytes -= moved;
  if (request.left_bytes == 0) finish(ticket);
}

void TransferQueue::finish(Ticket ticket) {
  const auto found = open_.find(ticket);
  const Request request = found->second;
  open_.erase(found);
  if (request.next != 0) {
    Request& next = open_.at(request.next);
    next.previous = 0;
    enqueue(request.next, next);
  } else {
    last_on_extent_[static_cast<std::size_t>(request.extent)] = 0;
  }
  finished_.notify_all();
}

void TransferQueue::fail(const Piece& piece, const std::string& reason) {
  const Request& request = open_.at(piece.ticket);
  error_ = fmt::format("{} extent {} ({}) {} the tier failed: {}", piece.is_write ? "writing" : "reading",
                       request.extent, format_bytes(extents_.size_bytes(request.extent)),
                       piece.is_write ? "to" : "from", reason);
  finished_.notify_all();
}

void TransferQueue::abandon(const std::string& reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (error_.empty()) {
    try {
      error_ = "a thread of the tier failed: " + reason;
    } catch (const std::bad_alloc&) {
      error_ = "out of memory";  // short enough to be kept without allocating
    }
  }
  finished_.notify_all();
}

void TransferQueue::throw_error() const {
  if (!error_.empty()) throw RunError(error_);
}

}  // namespace penstock
