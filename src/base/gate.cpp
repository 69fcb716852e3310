#include "base/gate.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace penstock {
namespace {

/// Looks at the clock after so many looks at the gate.
constexpr int kLooks = 32;

void rest() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t),
              "the kernel looks at the number itself");

}  // namespace

void Gate::open() {
  // Either this sees the sleeper's count or the sleeper's kernel sees the new number: both are sequentially
  // consistent.
  opened_.fetch_add(1);
  if (sleepers_.load() > 0) {
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&opened_), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
              nullptr, 0);
  }
}

void Gate::wait(std::uint32_t seen, std::chrono::nanoseconds spin) {
  const auto end = std::chrono::steady_clock::now() + spin;
  do {
    for (int look = 0; look < kLooks; ++look) {
      if (now() != seen) return;
      rest();
    }
  } while (std::chrono::steady_clock::now() < end);
  sleepers_.fetch_add(1);
  while (now() == seen) {
    // Returns at once if the number has changed, and may return for no reason.
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&opened_), FUTEX_WAIT_PRIVATE, seen, nullptr,
              nullptr, 0);
  }
  sleepers_.fetch_sub(1);
}

}  // namespace penstock
