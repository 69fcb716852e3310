#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace penstock {

/// Threads wait here until the next time it opens. They spin for a while, because a sleeping thread takes
/// some tens of microseconds to wake; then they sleep, because the thread they wait for may need their core.
class Gate {
 public:
  /// What wait() waits to change; to be read before anything that may lead to open().
  std::uint32_t now() const { return opened_.load(std::memory_order_acquire); }
  /// Whoever waits sees all that was written before.
  void open();
  /// Returns once the gate has opened since `seen` was now(). Sleeps if that takes longer than `spin`.
  void wait(std::uint32_t seen, std::chrono::nanoseconds spin);

 private:
  std::atomic<std::uint32_t> opened_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace penstock
