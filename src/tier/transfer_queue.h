#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/long_vector.h"
#include "tier/extents.h"
#include "tier/tier.h"

namespace penstock {

/// A part of a request, small enough for one call of the operating system.
struct Piece {
  Ticket ticket = 0;
  bool is_write = false;
  std::byte* data = nullptr;
  std::int64_t size_bytes = 0;
  std::int64_t offset_bytes = 0;
  int attempts = 0;  // without any progress
};

/// The part that all asynchronous stores share: tickets, order, splitting, continuation of short transfers,
/// the first error, statistics. One thread pushes and waits; any number of workers take pieces and complete
/// them. Every piece taken must be completed, also after stop().
class TransferQueue {
 public:
  TransferQueue(TierExtents extents, std::int64_t piece_bytes);

  const TierExtents& extents() const { return extents_; }
  /// See Tier::place().
  void place(std::span<const std::int64_t> offsets);
  Ticket push(bool is_write, int extent, void* data, Priority priority);
  void wait(Ticket ticket);
  bool done(Ticket ticket) const;
  TierStats stats() const;
  /// No more pieces are handed out; requests that have not begun never will.
  void stop();

  /// The next piece; blocks until there is one. None after stop().
  std::optional<Piece> take();
  /// The next piece, or none at present.
  std::optional<Piece> try_take();
  /// A worker cannot go on: every wait from now on throws RunError with this reason.
  void abandon(const std::string& reason) noexcept;
  /// `result`: bytes moved, or -errno.
  void complete(Piece piece, std::int64_t result);

 private:
  struct Request {
    int extent = 0;
    bool is_write = false;
    bool urgent = false;
    std::byte* data = nullptr;
    std::int64_t taken_bytes = 0;
    std::int64_t left_bytes = 0;
    Ticket previous = 0;  // open request on the same extent, to be finished first
    Ticket next = 0;
  };
  /// One direction's share.
  struct Lane {
    std::deque<Ticket> urgent;
    std::deque<Ticket> normal;
    std::int64_t bytes_under_way = 0;
    int pieces_under_way = 0;
    std::chrono::steady_clock::time_point busy_since;
    double busy_seconds = 0;
  };

  // All of these are called with mutex_ held.
  void enqueue(Ticket ticket, Request& request);
  void make_urgent(Ticket ticket);
  std::deque<Ticket>* next_line();
  std::optional<Piece> next_piece();
  void account_taken(const Piece& piece);
  void account_completed(const Piece& piece);
  void finish(Ticket ticket);
  void fail(const Piece& piece, const std::string& reason);
  void throw_error() const;
  Lane& lane(bool is_write) { return lanes_[is_write ? 1 : 0]; }

  TierExtents extents_;  // sizes never change; offsets are guarded by mutex_, but the thread that places may
                         // read them
  const std::int64_t piece_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable finished_;
  // Guarded by mutex_.
  std::unordered_map<Ticket, Request> open_;
  LongVector<Ticket> last_on_extent_;
  std::deque<Piece> again_;  // rests of short transfers, and what is to be tried once more
  std::array<Lane, 2> lanes_;
  Ticket last_ticket_ = 0;
  bool stopped_ = false;
  std::string error_;
  TierStats stats_;
};

}  // namespace penstock
