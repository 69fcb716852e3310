#pragma once

#include <future>
#include <memory>
#include <thread>

#include "tier/file_io.h"
#include "tier/swap_file.h"
#include "tier/tier.h"
#include "tier/transfer_queue.h"

namespace penstock {

class Ring;

/// io_uring over a swap file. One thread owns the ring: it keeps up to kDepth pieces under way and sleeps in
/// the kernel until some are complete. Owns its file and thread.
class DiskTier final : public Tier {
 public:
  static constexpr int kDepth = 64;

  /// -errno when this process gets no ring that reads and writes, else 0. Makes one and closes it again.
  static int probe(FileIo& io);

  /// Throws RunError when the kernel gives no ring.
  DiskTier(TierExtents extents, SwapFile file, std::shared_ptr<FileIo> io);
  ~DiskTier() override;

  int extent_count() const override { return queue_.extents().count(); }
  std::int64_t extent_bytes(int extent) const override { return queue_.extents().size_bytes(extent); }
  std::int64_t extent_offset(int extent) const override { return queue_.extents().offset_bytes(extent); }
  void place(std::span<const std::int64_t> offsets) override { queue_.place(offsets); }
  Ticket write(int extent, const void* data, Priority priority) override;
  Ticket read(int extent, void* data, Priority priority) override;
  void wait(Ticket ticket) override { queue_.wait(ticket); }
  bool done(Ticket ticket) override { return queue_.done(ticket); }
  TierStats stats() const override { return queue_.stats(); }

 private:
  /// The thread: `started` gets the ring's status. What goes wrong later is the queue's error.
  void work(std::promise<int>& started);
  void serve(Ring& ring);

  SwapFile file_;
  std::shared_ptr<FileIo> io_;
  TransferQueue queue_;
  std::thread thread_;
};

}  // namespace penstock
