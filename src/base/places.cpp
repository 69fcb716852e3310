#include "base/places.h"

#include <algorithm>
#include <cstddef>

namespace penstock {
namespace {

constexpr int kUnknown = -1;

}  // namespace

Places::Places() {
  for (std::atomic<int>& core : cores_) core.store(kUnknown, std::memory_order_relaxed);
}

void Places::see(int thread, int core) {
  if (thread >= kThreads) return;
  std::atomic<int>& last = cores_[static_cast<std::size_t>(thread)];
  // Mostly it is the same, and then the others keep their copies of the cache line.
  if (last.load(std::memory_order_relaxed) != core) last.store(core, std::memory_order_relaxed);
}

bool Places::shares(int thread, int first, int end) const {
  const auto core_of = [&](int each) {
    return cores_[static_cast<std::size_t>(each)].load(std::memory_order_relaxed);
  };
  if (thread >= kThreads || core_of(thread) < 0) return false;
  for (int other = first; other < std::min(end, kThreads); ++other) {
    if (other != thread && core_of(other) == core_of(thread)) return true;
  }
  return false;
}

}  // namespace penstock
