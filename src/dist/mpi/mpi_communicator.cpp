#include "dist/mpi/mpi_communicator.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/error.h"

namespace penstock::dist {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSizeTag = 3;
constexpr int kTextTag = 4;
constexpr int kArrayTag = 5;
/// Floats of one message outside exchanges.
constexpr std::int64_t kArrayChunk = 1 << 20;
/// Open MPI's segment of shared memory for ranks on one machine; its pages come as they are used.
constexpr std::int64_t kShared = 4 << 20;
/// Between two looks; longer the longer nothing comes, so that waiting for a late rank costs compute next to
/// nothing.
constexpr std::chrono::microseconds kPause{100};
constexpr std::chrono::microseconds kLongPause{500};
constexpr std::chrono::seconds kAbortPatience{5};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Thrown on the thread to leave whatever it does.
struct Aborted {};

}  // namespace

MpiCommunicator::MpiCommunicator() : thread_([this] { serve(); }) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return ready_ || error_ != nullptr; });
  if (error_ != nullptr) {
    lock.unlock();
    thread_.join();
    std::rethrow_exception(error_);
  }
}

MpiCommunicator::~MpiCommunicator() {
  bool unfinished = false;
  {
    const std::lock_guard lock(mutex_);
    // The others would wait for us for ever.
    unfinished = !open_.empty() || error_ != nullptr;
    stop_ = !unfinished;
  }
  if (unfinished) abort(1);
  work_.notify_all();
  thread_.join();
}

void MpiCommunicator::serve() {
  // The kernel would stretch each of our short sleeps by 50 us.
  prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
  try {
    world_ = std::make_unique<World>();
    buffers_ = std::make_unique<ReceiveBuffers>(world_->size());
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    done_.notify_all();
    return;
  }
  rank_ = world_->rank();
  size_ = world_->size();
  local_size_ = world_->local_size();
  std::unique_lock lock(mutex_);
  ready_ = true;
  done_.notify_all();
  for (;;) {
    work_.wait(lock, [this] { return aborting_ || stop_ || (!jobs_.empty() && error_ == nullptr); });
    if (aborting_) break;
    if (jobs_.empty()) break;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      job();
    } catch (const Aborted&) {
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error != nullptr && error_ == nullptr) error_ = error;
    done_.notify_all();
  }
  const bool aborting = aborting_;
  const int code = abort_code_;
  lock.unlock();
  if (aborting) {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }
  buffers_.reset();
  world_.reset();
}

void MpiCommunicator::push(Job job, std::unique_lock<std::mutex>& lock) {
  if (error_ != nullptr) std::rethrow_exception(error_);
  jobs_.push_back(std::move(job));
  lock.unlock();
  work_.notify_all();
}

void MpiCommunicator::call(const Job& job) {
  bool complete = false;
  std::unique_lock lock(mutex_);
  push(
      [&] {
        job();
        const std::lock_guard guard(mutex_);
        complete = true;
      },
      lock);
  lock.lock();
  done_.wait(lock, [&] { return complete || error_ != nullptr; });
  if (!complete) std::rethrow_exception(error_);
}

void MpiCommunicator::pause(std::chrono::microseconds& length) {
  std::unique_lock lock(mutex_);
  if (!aborting_) work_.wait_for(lock, length, [this] { return aborting_; });
  if (aborting_) throw Aborted{};
  length = std::min(kLongPause, length + length / 4);
}

void MpiCommunicator::finish(MPI_Request request) {
  std::chrono::microseconds length = kPause;
  for (;;) {
    int complete = 0;
    check_mpi(MPI_Test(&request, &complete, MPI_STATUS_IGNORE));
    if (complete != 0) return;
    pause(length);
  }
}

std::int64_t MpiCommunicator::growth_bytes() const {
  // What arrives before it is asked for lies in MPI's own memory: at most a chunk from each rank.
  return size_ == 1 ? 0 : kShared + ReceiveBuffers::chunk_floats(size_) * 4 * (size_ - 1);
}

void MpiCommunicator::start(int ticket, Exchange exchange, float* values, std::int64_t count) {
  std::unique_lock lock(mutex_);
  require(open_.insert(ticket).second, "communicator: two exchanges with one ticket");
  push([this, ticket, exchange, values, count] { run_exchange(ticket, exchange, values, count); }, lock);
}

void MpiCommunicator::run_exchange(int ticket, Exchange exchange, float* values, std::int64_t count) {
  const auto begin = Clock::now();
  ExchangeRun run(*world_, *buffers_, exchange, values, count);
  std::chrono::microseconds length = kPause;
  while (!run.done()) {
    if (run.advance()) {
      length = kPause;
    } else {
      pause(length);
    }
  }
  const std::lock_guard lock(mutex_);
  open_.erase(ticket);
  stats_.sent_bytes += run.sent_bytes();
  stats_.busy_seconds += seconds_since(begin);
}

void MpiCommunicator::wait(int ticket) {
  std::unique_lock lock(mutex_);
  const auto begin = Clock::now();
  done_.wait(lock, [&] { return !open_.contains(ticket) || error_ != nullptr; });
  stats_.wait_seconds += seconds_since(begin);
  if (open_.contains(ticket)) std::rethrow_exception(error_);
}

ExchangeStats MpiCommunicator::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

std::vector<std::string> MpiCommunicator::all_gather(const std::string& value) {
  std::vector<std::string> values;
  call([&] { values = gather_strings(value); });
  return values;
}

/// All to rank 0, which sends the whole list back.
std::vector<std::string> MpiCommunicator::gather_strings(const std::string& value) {
  const auto send = [&](const std::string& text, int to) {
    const auto size_bytes = static_cast<std::int64_t>(text.size());
    finish(world_->send(&size_bytes, sizeof(size_bytes), to, kSizeTag));
    finish(world_->send(text.data(), size_bytes, to, kTextTag));
  };
  const auto receive = [&](int from) {
    std::int64_t size_bytes = 0;
    finish(world_->receive(&size_bytes, sizeof(size_bytes), from, kSizeTag));
    std::string text(static_cast<std::size_t>(size_bytes), '\0');
    finish(world_->receive(text.data(), size_bytes, from, kTextTag));
    return text;
  };
  std::vector<std::string> values(static_cast<std::size_t>(size_));
  if (rank_ != 0) {
    send(value, 0);
    for (std::string& other : values) other = receive(0);
    return values;
  }
  values[0] = value;
  for (int rank = 1; rank < size_; ++rank) values[static_cast<std::size_t>(rank)] = receive(rank);
  for (int rank = 1; rank < size_; ++rank) {
    for (const std::string& other : values) send(other, rank);
  }
  return values;
}

void MpiCommunicator::broadcast(float* values, std::int64_t count) {
  call([&] {
    for (std::int64_t begin = 0; begin < count; begin += kArrayChunk) {
      const std::int64_t bytes = std::min(kArrayChunk, count - begin) * 4;
      if (rank_ != 0) {
        finish(world_->receive(values + begin, bytes, 0, kArrayTag));
        continue;
      }
      for (int rank = 1; rank < size_; ++rank) finish(world_->send(values + begin, bytes, rank, kArrayTag));
    }
  });
}

void MpiCommunicator::gather(const float* own, std::span<const std::int64_t> bounds, float* whole) {
  require(bounds.size() == static_cast<std::size_t>(size_) + 1, "gather: bounds are not given for each rank");
  const auto bound = [&](int rank) { return bounds[static_cast<std::size_t>(rank)]; };
  if (rank_ == 0) std::copy_n(own, bound(1) - bound(0), whole + bound(0));
  call([&] {
    for (int rank = rank_ == 0 ? 1 : rank_; rank < (rank_ == 0 ? size_ : rank_ + 1); ++rank) {
      for (std::int64_t begin = bound(rank); begin < bound(rank + 1); begin += kArrayChunk) {
        const std::int64_t bytes = std::min(kArrayChunk, bound(rank + 1) - begin) * 4;
        if (rank_ == 0) {
          finish(world_->receive(whole + begin, bytes, rank, kArrayTag));
        } else {
          finish(world_->send(own + (begin - bound(rank)), bytes, 0, kArrayTag));
        }
      }
    }
  });
}

void MpiCommunicator::abort(int exit_code) {
  {
    const std::lock_guard lock(mutex_);
    aborting_ = true;
    abort_code_ = exit_code;
  }
  work_.notify_all();
  // MPI_Abort ends this process as well; if it does not, somebody has to.
  std::this_thread::sleep_for(kAbortPatience);
  std::_Exit(exit_code);
}

}  // namespace penstock::dist
