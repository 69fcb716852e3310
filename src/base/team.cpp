#include "base/team.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/shared_work.h"
#include "base/threads.h"

namespace penstock {
namespace {

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

void Team::work(int number, Worker& worker) {
  std::uint32_t seen = 0;
  while (true) {
    worker.begin.wait(seen);
    ++seen;
    if (stopping_) return;
    shared_work::enter_team(*this, number, threads_);
    body_(data_);
    shared_work::leave_team();
    if (working_.fetch_sub(1) == 1) done_.open();
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
  for (int i = 0; i + 1 < threads; ++i) workers_[static_cast<std::size_t>(i)]->begin.open();
}

void Team::finish() {
  if (threads_ > 1) done_.wait(done_seen_);
}

void Team::barrier() {
  const std::uint32_t seen = barrier_.now();
  if (arrived_.fetch_add(1) + 1 < threads_) {
    barrier_.wait(seen);
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
