#pragma once

#include <liburing.h>

#include <array>
#include <cstdint>
#include <vector>

#include "tier/file_io.h"
#include "tier/transfer_queue.h"

namespace penstock {

/// One io_uring with one file. Made, used and destroyed by one thread.
class Ring {
 public:
  explicit Ring(int depth);
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring();

  /// 0, or -errno when the kernel refused; the ring is of no use then.
  int status() const { return status_; }
  /// Whether it knows plain reads and writes; the first kernels with rings did not.
  bool reads_and_writes();
  void use_file(int descriptor);

  int under_way() const { return depth_ - static_cast<int>(free_.size()); }
  bool full() const { return free_.empty(); }
  void prepare(const Piece& piece);
  /// Submits what was prepared and sleeps until `count` pieces are complete, then gives all complete ones to
  /// the queue.
  void submit_and_complete(int count, TransferQueue& queue, FileIo& io);
  /// Waits until nothing is under way, whatever came of it: nobody writes into the buffers any more.
  void drain() noexcept;

 private:
  void complete(std::uint64_t slot, std::int64_t result, TransferQueue& queue, FileIo& io);

  io_uring ring_{};
  int depth_;
  int status_ = 0;
  int descriptor_ = -1;
  bool registered_ = false;
  std::vector<Piece> pieces_;        // by slot
  std::vector<std::uint64_t> free_;  // slots
};

}  // namespace penstock
