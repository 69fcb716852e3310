#pragma once

#include <cstdint>
#include <mutex>

#include "tier/file_io.h"

namespace penstock {

/// File calls that fail on demand, for tests. Counts the calls that move bytes (from 0), of threads and ring
/// alike. Any thread may call.
class FaultyFileIo final : public FileIo {
 public:
  enum class Kind {
    none,
    error,        // fails with `error_number`
    short_count,  // moves a part only, if there is more than one page
    no_count,     // moves nothing and says so
    throws,       // throws std::bad_alloc
  };
  struct Plan {
    Kind kind = Kind::none;
    int error_number = 0;
    std::int64_t at = 0;
    bool lasting = false;  // every call from `at` on
    int allocate_result = 0;
    int ring_result = 0;  // what asking for a ring gives
    bool ring_without_opcodes = false;
  };

  explicit FaultyFileIo(Plan plan) : plan_(plan) {}

  ssize_t read_at(int file, void* data, std::int64_t size_bytes, std::int64_t offset_bytes) override;
  ssize_t write_at(int file, const void* data, std::int64_t size_bytes, std::int64_t offset_bytes) override;
  int allocate(int file, std::int64_t size_bytes) override;
  std::int64_t ring_result(bool is_write, std::int64_t size_bytes, std::int64_t result) override;
  int ring_permitted() override { return plan_.ring_result; }
  bool ring_reads_and_writes(bool knows) override { return knows && !plan_.ring_without_opcodes; }

  std::int64_t calls() const;

 private:
  bool strikes();
  /// How many of the bytes a struck call moves, or -errno.
  std::int64_t struck(std::int64_t size_bytes) const;

  const Plan plan_;
  mutable std::mutex mutex_;
  std::int64_t calls_ = 0;  // guarded by mutex_
};

}  // namespace penstock
