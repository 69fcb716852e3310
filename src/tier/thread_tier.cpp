#include "tier/thread_tier.h"

#include <exception>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/threads.h"

namespace penstock {
namespace {

constexpr std::int64_t kPieceBytes = kMiB;

}  // namespace

ThreadTier::ThreadTier(TierExtents extents, SwapFile file, std::shared_ptr<FileIo> io, int threads)
    : file_(std::move(file)), io_(std::move(io)), queue_(std::move(extents), kPieceBytes) {
  require(threads > 0, "a thread tier needs a thread");
  threads_ = start_threads(
      threads, [this] { work(); }, "swaps");
}

ThreadTier::~ThreadTier() {
  queue_.stop();
  for (std::thread& thread : threads_) thread.join();
}

Ticket ThreadTier::write(int extent, const void* data, Priority priority) {
  // The queue keeps one kind of pointer for both directions; a write only reads through it.
  return queue_.push(true, extent, const_cast<void*>(data), priority);
}

Ticket ThreadTier::read(int extent, void* data, Priority priority) {
  return queue_.push(false, extent, data, priority);
}

void ThreadTier::work() {
  try {
    serve();
  } catch (const std::exception& error) {
    queue_.abandon(error.what());
  }
}

void ThreadTier::serve() {
  while (const auto piece = queue_.take()) {
    const ssize_t result =
        piece->is_write
            ? io_->write_at(file_.descriptor(), piece->data, piece->size_bytes, piece->offset_bytes)
            : io_->read_at(file_.descriptor(), piece->data, piece->size_bytes, piece->offset_bytes);
    queue_.complete(*piece, result);
  }
}

std::unique_ptr<Tier> make_ram_tier(const TierExtents& extents, std::shared_ptr<FileIo> io) {
  SwapFile file = SwapFile::in_memory(extents.total_bytes(), *io);
  return std::make_unique<ThreadTier>(extents, std::move(file), std::move(io), 1);
}

}  // namespace penstock
