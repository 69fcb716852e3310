#include "tier/ring.h"

#include <cerrno>

#include "base/error.h"

namespace penstock {

Ring::Ring(int depth) : depth_(depth), pieces_(static_cast<std::size_t>(depth)) {
  // Completions are handled when this thread asks for them, and nobody is interrupted for their sake.
#ifdef IORING_SETUP_DEFER_TASKRUN
  status_ = io_uring_queue_init(static_cast<unsigned>(depth), &ring_,
                                IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
  if (status_ == -EINVAL)
#endif
    status_ = io_uring_queue_init(static_cast<unsigned>(depth), &ring_, 0);
  for (int slot = depth - 1; slot >= 0; --slot) free_.push_back(static_cast<std::uint64_t>(slot));
}

Ring::~Ring() {
  if (status_ == 0) io_uring_queue_exit(&ring_);
}

bool Ring::reads_and_writes() {
  io_uring_probe* probe = io_uring_get_probe_ring(&ring_);
  if (probe == nullptr) return false;
  const bool known = io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                     io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
  io_uring_free_probe(probe);
  return known;
}

void Ring::use_file(int descriptor) {
  descriptor_ = descriptor;
  registered_ = io_uring_register_files(&ring_, &descriptor, 1) == 0;
}

void Ring::prepare(const Piece& piece) {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  require(entry != nullptr && !free_.empty(), "the ring is full");
  const std::uint64_t slot = free_.back();
  free_.pop_back();
  pieces_[slot] = piece;
  const int file = registered_ ? 0 : descriptor_;
  const auto size = static_cast<unsigned>(piece.size_bytes);
  const auto offset = static_cast<std::uint64_t>(piece.offset_bytes);
  if (piece.is_write) {
    io_uring_prep_write(entry, file, piece.data, size, offset);
  } else {
    io_uring_prep_read(entry, file, piece.data, size, offset);
  }
  if (registered_) entry->flags |= IOSQE_FIXED_FILE;
  entry->user_data = slot;
}

void Ring::submit_and_complete(int count, TransferQueue& queue, FileIo& io) {
  const int result = io_uring_submit_and_wait(&ring_, static_cast<unsigned>(count));
  if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY) {
    // The ring itself is broken: nothing that is under way will ever be reported.
    for (std::uint64_t slot = 0; slot < pieces_.size(); ++slot) {
      if (pieces_[slot].ticket != 0) complete(slot, result, queue, io);
    }
    return;
  }
  io_uring_cqe* entry = nullptr;
  while (io_uring_peek_cqe(&ring_, &entry) == 0 && entry != nullptr) {
    const std::uint64_t slot = entry->user_data;
    const std::int64_t moved = entry->res;
    io_uring_cqe_seen(&ring_, entry);
    complete(slot, moved, queue, io);
  }
}

void Ring::drain() noexcept {
  while (under_way() > 0) {
    io_uring_cqe* entry = nullptr;
    const int result = io_uring_submit_and_wait(&ring_, 1);
    if (result < 0 && result != -EINTR && result != -EAGAIN && result != -EBUSY) return;
    while (io_uring_peek_cqe(&ring_, &entry) == 0 && entry != nullptr) {
      free_.push_back(entry->user_data);
      io_uring_cqe_seen(&ring_, entry);
    }
  }
}

void Ring::complete(std::uint64_t slot, std::int64_t result, TransferQueue& queue, FileIo& io) {
  const Piece piece = pieces_[slot];
  pieces_[slot].ticket = 0;
  free_.push_back(slot);
  queue.complete(piece, io.ring_result(piece.is_write, piece.size_bytes, result));
}

}  // namespace penstock
