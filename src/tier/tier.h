#pragma once

#include <cstdint>
#include <span>

namespace penstock {

/// Names one request; never used twice. 0 names none.
using Ticket = std::uint64_t;

/// Order among waiting requests: urgent reads, urgent writes, then normal reads and writes by turns; each
/// first come, first served. A request that wait() has to block for becomes urgent.
enum class Priority { normal, urgent };

/// Buffers handed to a tier start on this boundary and are accessible up to the next multiple of it.
inline constexpr std::int64_t kTierAlignment = 4096;

struct TierStats {
  std::int64_t read_bytes = 0;
  std::int64_t written_bytes = 0;
  std::int64_t reads = 0;
  std::int64_t writes = 0;
  /// Time during which at least one read (write) was under way.
  double read_seconds = 0;
  double write_seconds = 0;
  /// Calls of wait() that had to block, and for how long.
  std::int64_t stalls = 0;
  double stall_seconds = 0;
};

/// An asynchronous store of bytes. Its extents and their sizes are fixed when it is made; a request moves one
/// whole extent. Requests on one extent take effect in the order given, others in any order: also where two
/// extents share a place, so that the caller waits for the one before it asks for the other. From the request
/// until wait() returns (or done() says true), the buffer belongs to the tier: what a write reads from must
/// not change, what a read fills is undefined. Every ticket is to be waited for; wait() on one that was
/// waited for before returns at once. The first failure of any request is kept: the wait for that request
/// throws it, and so does every later call of wait(). The destructor ends requests under way without hanging;
/// buffers must live until then. One thread (the executor's) calls a tier; a tier's own threads sleep in the
/// kernel when there is nothing to do.
class Tier {
 public:
  Tier() = default;
  Tier(const Tier&) = delete;
  Tier& operator=(const Tier&) = delete;
  virtual ~Tier() = default;

  virtual int extent_count() const = 0;
  virtual std::int64_t extent_bytes(int extent) const = 0;

  /// Where the extent lies; -1: nowhere, nothing may be asked of it.
  virtual std::int64_t extent_offset(int extent) const = 0;
  /// From now on the extents lie at these offsets. One that moves loses what it held, and no request on it is
  /// under way.
  virtual void place(std::span<const std::int64_t> offsets) = 0;

  /// Starts to copy extent_bytes(extent) bytes out of `data`.
  virtual Ticket write(int extent, const void* data, Priority priority = Priority::normal) = 0;
  /// Starts to copy them into `data`.
  virtual Ticket read(int extent, void* data, Priority priority = Priority::normal) = 0;
  /// Blocks until the request is complete. Throws RunError: see above.
  virtual void wait(Ticket ticket) = 0;
  /// Whether wait() would return, or throw, without blocking.
  virtual bool done(Ticket ticket) = 0;
  virtual TierStats stats() const = 0;
};

}  // namespace penstock
