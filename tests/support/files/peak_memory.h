#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace penstock::testing {

/// How much more memory than before the process had at its worst since this was made. -1 where the kernel
/// does not tell, and under a sanitizer, which takes memory of its own for each byte.
class PeakMemory {
 public:
  PeakMemory() {
    std::ofstream file("/proc/self/clear_refs");
    file << "5";
    file.flush();
    if (file.good() && !kSanitized) before_bytes_ = resident("VmRSS:");
  }

  std::int64_t grown_bytes() const { return before_bytes_ < 0 ? -1 : resident("VmHWM:") - before_bytes_; }

 private:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool kSanitized = true;
#else
  static constexpr bool kSanitized = false;
#endif
  static std::int64_t resident(const std::string& key) {
    std::ifstream file("/proc/self/status");
    for (std::string word; file >> word;) {
      std::int64_t kib = 0;
      if (word == key && file >> kib) return kib * 1024;
    }
    return -1;
  }

  std::int64_t before_bytes_ = -1;
};

}  // namespace penstock::testing
