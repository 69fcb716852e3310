#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/gate.h"
#include "base/places.h"

namespace penstock {

/// The threads that share the work of one thread's kernels. Each has a part of it, under its number.
///
/// A caller that is done with its own part also does those that their workers have not begun, each under its
/// own number, so the results are the same: beside other busy processes a worker may be without a core for
/// milliseconds. Parts may wait for each other all the same. A thread does one part at a time, and the caller
/// takes others only when its own has ended, so a part that nobody has begun has a worker that is on its way
/// to it.
class Team {
 public:
  using Body = void (*)(void* data);

  Team() = default;
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Has so many threads from now on, the caller among them. Throws RunError if the system gives none.
  void reserve(int threads);
  /// The others of `threads`, which must have been reserved, call body(data); the caller does so itself, as
  /// number 0, and then finish(), which returns when all parts are done.
  void start(int threads, Body body, void* data);
  void finish();

  /// Returns when all parts have come here.
  void barrier();
  /// Takes the next `count` of the iterations of loop `loop` (counted from 1, by each thread for itself) that
  /// nobody has taken, and returns the first of them. Who gets `total` or more gets none.
  std::int64_t take(std::uint32_t loop, std::int64_t count, std::int64_t total);

 private:
  struct alignas(64) Worker {
    Gate begin;
    std::atomic<bool> part_is_free{false};
    std::thread thread;

    /// True for the one thread that shall do the part.
    bool take_part();
  };
  void work(int number, Worker& worker);
  /// Waits for threads from `first` to before `end`.
  void wait(Gate& gate, std::uint32_t seen, int first, int end);

  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<bool> stopping_{false};
  Places places_;
  // What is done now; written while no part is free or begun, and read by who has taken one.
  Body body_ = nullptr;
  void* data_ = nullptr;
  int threads_ = 1;
  std::uint32_t done_seen_ = 0;

  alignas(64) std::atomic<int> working_{0};
  Gate done_;
  alignas(64) std::atomic<int> arrived_{0};
  Gate barrier_;
  /// Number of the loop, and how many of its iterations are taken.
  alignas(64) std::atomic<std::uint64_t> taken_{0};
};

}  // namespace penstock
