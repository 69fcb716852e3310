#pragma once

#include <cstdint>

namespace penstock {

/// While it is there, the calling thread asks the kernel to run it for shorter times, and so sooner: a thread
/// that others wait for comes back earlier to a core that it shares with other programs (Linux since 6.12).
/// It takes no larger share of the core for that. Where the kernel knows nothing of this, nothing changes.
class ShortSlices {
 public:
  ShortSlices();
  ~ShortSlices();
  ShortSlices(const ShortSlices&) = delete;
  ShortSlices& operator=(const ShortSlices&) = delete;

 private:
  std::uint64_t before_nanoseconds_ = 0;
};

/// How long the kernel lets the calling thread run at a time beside others; 0: it does not tell.
std::uint64_t slice_nanoseconds();

}  // namespace penstock
