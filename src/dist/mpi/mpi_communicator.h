#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "dist/communicator.h"
#include "dist/mpi/exchange_run.h"
#include "dist/mpi/world.h"

namespace penstock::dist {

/// Ranks joined by MPI. A thread of its own makes every MPI call, from MPI_Init to MPI_Finalize. It sleeps
/// when there is nothing to do, and between looks while something is under way: whatever it took of a core
/// would be missing in compute.
class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator();
  ~MpiCommunicator() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_size() const override { return local_size_; }
  std::int64_t growth_bytes() const override;

  void start(int ticket, Exchange exchange, float* values, std::int64_t count) override;
  void wait(int ticket) override;
  ExchangeStats stats() const override;

  std::vector<std::string> all_gather(const std::string& value) override;
  void broadcast(float* values, std::int64_t count) override;
  void gather(const float* own, std::span<const std::int64_t> bounds, float* whole) override;

  [[noreturn]] void abort(int exit_code) override;

 private:
  using Job = std::function<void()>;

  void serve();
  /// Runs the job on the thread behind all that was asked for before, and waits for it.
  void call(const Job& job);
  void push(Job job, std::unique_lock<std::mutex>& lock);
  /// Until the request is complete; sleeps meanwhile.
  void finish(MPI_Request request);
  void run_exchange(int ticket, Exchange exchange, float* values, std::int64_t count);
  /// Sleeps for a while, and makes the next while longer.
  void pause(std::chrono::microseconds& length);
  std::vector<std::string> gather_strings(const std::string& value);

  int rank_ = 0;
  int size_ = 1;
  int local_size_ = 1;

  // Used by the thread alone.
  std::unique_ptr<World> world_;
  std::unique_ptr<ReceiveBuffers> buffers_;

  mutable std::mutex mutex_;
  std::condition_variable work_;  ///< for the thread
  std::condition_variable done_;  ///< for the caller
  // Guarded by mutex_.
  std::deque<Job> jobs_;
  bool stop_ = false;
  bool aborting_ = false;
  int abort_code_ = 0;
  std::set<int> open_;  ///< tickets that were not waited for and are not complete
  bool ready_ = false;
  std::exception_ptr error_;
  ExchangeStats stats_;

  std::thread thread_;
};

}  // namespace penstock::dist
