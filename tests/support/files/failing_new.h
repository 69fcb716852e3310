#pragma once

#include <cstdint>

namespace penstock::testing {

/// Makes the n-th operator new (from 0) of the calling thread from now on throw std::bad_alloc, once. The
/// program must be linked with failing_new.cpp, which replaces operator new.
class FailingNew {
 public:
  explicit FailingNew(std::int64_t at);
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;

  /// How many there were of this thread since.
  std::int64_t taken() const;
  /// Whether one failed.
  static bool struck();

 private:
  std::int64_t at_;
};

}  // namespace penstock::testing
