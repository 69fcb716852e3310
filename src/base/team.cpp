#include "base/team.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/shared_work.h"
#include "base/short_slices.h"
#include "base/threads.h"

namespace penstock {
namespace {

/// A parallel part of a kernel seldom takes longer than this beyond its first thread, on cores of its own.
constexpr std::chrono::microseconds kSpin{50};
/// Who spins on the core of the thread that it waits for waits for itself.
constexpr std::chrono::microseconds kNoSpin{0};

/// Of the calling thread in its team, whichever part it does: its caller is 0.
thread_local constinit int thread_number = 0;

constexpr int kIterationBits = 40;
constexpr std::uint64_t kIterations = (std::uint64_t{1} << kIterationBits) - 1;

}  // namespace

Team::~Team() {
  stopping_ = true;
  for (const auto& worker : workers_) {
    worker->begin.open();
    worker->thread.join();
  }
}

void Team::reserve(int threads) {
  while (static_cast<int>(workers_.size()) + 1 < threads) {
    auto worker = std::make_unique<Worker>();
    const int number = static_cast<int>(workers_.size()) + 1;
    worker->thread = start_thread([this, number, &worker = *worker] { work(number, worker); },
                                  fmt::format("is number {} of {} that compute", number + 1, threads));
    workers_.push_back(std::move(worker));
  }
}

bool Team::Worker::take_part() {
  // Most looks find it taken, and need not own the cache line.
  return part_is_free.load(std::memory_order_relaxed) &&
         part_is_free.exchange(false, std::memory_order_acquire);
}

void Team::wait(Gate& gate, std::uint32_t seen, int first, int end) {
  places_.see(thread_number, ::sched_getcpu());
  gate.wait(seen, places_.shares(thread_number, first, end) ? kNoSpin : kSpin);
}

void Team::work(int number, Worker& worker) {
  thread_number = number;
  const ShortSlices short_slices;
  while (true) {
    const std::uint32_t seen = worker.begin.now();
    if (stopping_) return;
    if (worker.take_part()) {
      places_.see(number, ::sched_getcpu());
      shared_work::do_part(*this, number, threads_, body_, data_);
      if (working_.fetch_sub(1) == 1) done_.open();
    } else {
      wait(worker.begin, seen, 0, 1);
    }
  }
}

void Team::start(int threads, Body body, void* data) {
  require(threads <= static_cast<int>(workers_.size()) + 1, "a team of more threads than were reserved");
  body_ = body;
  data_ = data;
  threads_ = threads;
  taken_.store(0, std::memory_order_relaxed);
  working_.store(threads - 1, std::memory_order_relaxed);
  done_seen_ = done_.now();
  places_.see(0, ::sched_getcpu());
  for (int i = 0; i + 1 < threads; ++i) {
    Worker& worker = *workers_[static_cast<std::size_t>(i)];
    worker.part_is_free.store(true, std::memory_order_release);
    worker.begin.open();
  }
}

void Team::finish() {
  if (threads_ == 1) return;
  for (int number = 1; number < threads_; ++number) {
    if (!workers_[static_cast<std::size_t>(number) - 1]->take_part()) continue;
    shared_work::do_part(*this, number, threads_, body_, data_);
    // Where a worker ends the last part it opens the gate, and the caller must have seen that before it goes
    // on.
    if (working_.fetch_sub(1) == 1) return;
  }
  wait(done_, done_seen_, 1, threads_);
}

void Team::barrier() {
  const std::uint32_t seen = barrier_.now();
  if (arrived_.fetch_add(1) + 1 < threads_) {
    wait(barrier_, seen, 0, threads_);
  } else {
    arrived_.store(0, std::memory_order_relaxed);
    barrier_.open();
  }
}

std::int64_t Team::take(std::uint32_t loop, std::int64_t count, std::int64_t total) {
  std::uint64_t before = taken_.load(std::memory_order_relaxed);
  while (true) {
    const std::uint64_t at = before >> kIterationBits;
    // Somebody went on to a later loop, and so found nothing left of this one.
    if (at > loop) return total;
    const std::uint64_t first = at == loop ? before & kIterations : 0;
    if (first >= static_cast<std::uint64_t>(total)) return total;
    const std::uint64_t after =
        (std::uint64_t{loop} << kIterationBits) |
        std::min<std::uint64_t>(first + static_cast<std::uint64_t>(count), static_cast<std::uint64_t>(total));
    if (taken_.compare_exchange_weak(before, after, std::memory_order_relaxed))
      return static_cast<std::int64_t>(first);
  }
}

}  // namespace penstock
