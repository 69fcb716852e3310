#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/gate.h"

namespace penstock {

/// The threads that share the work of one thread's kernels.
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
  /// number 0, and then finish(), which returns when all have.
  void start(int threads, Body body, void* data);
  void finish();

  /// Returns when all who were started have come here.
  void barrier();
  /// Takes the next `count` of the iterations of loop `loop` (counted from 1, by each thread for itself) that
  /// nobody has taken, and returns the first of them. Who gets `total` or more gets none.
  std::int64_t take(std::uint32_t loop, std::int64_t count, std::int64_t total);

 private:
  struct alignas(64) Worker {
    Gate begin;
    std::thread thread;
  };
  void work(int number, Worker& worker);

  std::vector<std::unique_ptr<Worker>> workers_;
  bool stopping_ = false;
  // What is done now; written while all workers wait.
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
