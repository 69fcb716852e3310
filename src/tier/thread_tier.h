#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "tier/file_io.h"
#include "tier/swap_file.h"
#include "tier/tier.h"
#include "tier/transfer_queue.h"

namespace penstock {

/// A few threads that call pread and pwrite, as many as the system gives of those asked for. Owns its file
/// and threads.
class ThreadTier final : public Tier {
 public:
  ThreadTier(TierExtents extents, SwapFile file, std::shared_ptr<FileIo> io, int threads);
  ~ThreadTier() override;

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
  /// A thread; what goes wrong in it is the queue's error.
  void work();
  void serve();

  SwapFile file_;
  std::shared_ptr<FileIo> io_;
  TransferQueue queue_;
  std::vector<std::thread> threads_;
};

/// A store in memory outside the budget, as a GPU's host memory would be: one background thread copies.
/// Throws UserError when the machine has not that much memory.
std::unique_ptr<Tier> make_ram_tier(const TierExtents& extents, std::shared_ptr<FileIo> io);

}  // namespace penstock
