#pragma once

#include <sys/types.h>

#include <cstdint>

namespace penstock {

/// The calls of the operating system that move bytes of the swap file; tests put one in its place that fails
/// on demand. Results are those of the calls, with -errno for a failure. Any thread may call.
class FileIo {
 public:
  virtual ~FileIo() = default;

  virtual ssize_t read_at(int file, void* data, std::int64_t size_bytes, std::int64_t offset_bytes);
  virtual ssize_t write_at(int file, const void* data, std::int64_t size_bytes, std::int64_t offset_bytes);
  /// Reserves disk space for the whole file: 0 or -errno.
  virtual int allocate(int file, std::int64_t size_bytes);
  /// What io_uring answered to a request; returns what the tier is to see.
  virtual std::int64_t ring_result(bool is_write, std::int64_t size_bytes, std::int64_t result);
  /// 0, or -errno when no ring is to be had.
  virtual int ring_permitted() { return 0; }
  /// Whether a ring that was made, and says of itself that it `knows` reads and writes, does.
  virtual bool ring_reads_and_writes(bool knows) { return knows; }
};

}  // namespace penstock
