#pragma once

#include <array>
#include <atomic>

namespace penstock {

/// On which core each thread of a team was seen last. Threads may tell and ask at the same time, and what
/// they hear may be out of date: it is for decisions about speed only. Threads beyond kThreads are not known.
class Places {
 public:
  static constexpr int kThreads = 1024;

  Places();
  /// `core` below 0: the system does not tell.
  void see(int thread, int core);
  /// Whether one of the others from `first` to before `end` was seen last where `thread` was.
  bool shares(int thread, int first, int end) const;

 private:
  std::array<std::atomic<int>, kThreads> cores_;
};

}  // namespace penstock
