#pragma once

#include "base/short_slices.h"

namespace penstock {

/// While it is there, OpenMP's parallel parts that the calling thread comes to, Penstock's and oneDNN's, are
/// done by a Team of so many threads in place of OpenMP's own. OpenMP's threads wait by spinning for
/// milliseconds: beside other busy processes that takes the core from the thread that they wait for.
/// Everybody else's OpenMP stays as it is. Throws RunError if the system does not give the threads.
class ThreadScope {
 public:
  explicit ThreadScope(int threads);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
  int openmp_before_;
  ShortSlices short_slices_;
};

}  // namespace penstock
