#include "tier/disk_tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "base/threads.h"
#include "tier/ring.h"

namespace penstock {
namespace {

constexpr std::int64_t kPieceBytes = kMiB;

}  // namespace

int DiskTier::probe(FileIo& io) {
  const int permitted = io.ring_permitted();
  if (permitted != 0) return permitted;
  Ring ring(kDepth);
  if (ring.status() != 0) return ring.status();
  return io.ring_reads_and_writes(ring.reads_and_writes()) ? 0 : -EOPNOTSUPP;
}

DiskTier::DiskTier(TierExtents extents, SwapFile file, std::shared_ptr<FileIo> io)
    : file_(std::move(file)), io_(std::move(io)), queue_(std::move(extents), kPieceBytes) {
  const auto promise = std::make_shared<std::promise<int>>();
  std::future<int> started = promise->get_future();
  thread_ = start_thread([this, promise] { work(*promise); }, "swaps");
  const int status = started.get();
  if (status != 0) {
    thread_.join();
    throw RunError(fmt::format("io_uring is refused: {}", std::strerror(-status)));
  }
}

DiskTier::~DiskTier() {
  queue_.stop();
  thread_.join();
}

Ticket DiskTier::write(int extent, const void* data, Priority priority) {
  // The queue keeps one kind of pointer for both directions; a write only reads through it.
  return queue_.push(true, extent, const_cast<void*>(data), priority);
}

Ticket DiskTier::read(int extent, void* data, Priority priority) {
  return queue_.push(false, extent, data, priority);
}

void DiskTier::work(std::promise<int>& started) {
  std::optional<Ring> ring;
  int status = -ENOMEM;
  try {
    ring.emplace(kDepth);
    status = ring->status();
    if (status == 0) ring->use_file(file_.descriptor());
  } catch (const std::bad_alloc&) {
    ring.reset();
  }
  started.set_value(status);
  if (status != 0) return;
  try {
    serve(*ring);
  } catch (const std::exception& error) {
    ring->drain();
    queue_.abandon(error.what());
  }
}

void DiskTier::serve(Ring& ring) {
  while (true) {
    if (ring.under_way() == 0) {
      const auto piece = queue_.take();
      if (!piece) return;
      ring.prepare(*piece);
    }
    while (!ring.full()) {
      const auto piece = queue_.try_take();
      if (!piece) break;
      ring.prepare(*piece);
    }
    // Several at a time while many are under way: every wake-up takes a core from compute.
    ring.submit_and_complete(std::max(1, ring.under_way() / 4), queue_, *io_);
  }
}

}  // namespace penstock
