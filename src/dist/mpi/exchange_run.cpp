#include "dist/mpi/exchange_run.h"

#include <algorithm>

#include "base/bytes.h"
#include "dist/sum.h"

namespace penstock::dist {
namespace {

constexpr int kPieceTag = 1;
constexpr int kSumTag = 2;
/// Messages of one kind that are under way to, or from, one rank.
constexpr std::int64_t kWindow = 4;
/// For all buffers together; a chunk is a page at least and kMaxChunk at most.
constexpr std::int64_t kBufferBytes = 8 * kMiB;
constexpr std::int64_t kMaxChunk = kMiB / 4;
constexpr std::int64_t kMinChunk = 1024;

}  // namespace

std::int64_t ReceiveBuffers::chunk_floats(int ranks) {
  const std::int64_t others = std::max(1, ranks - 1);
  return std::clamp(kBufferBytes / 4 / kDepth / others / 16 * 16, kMinChunk, kMaxChunk);
}

ReceiveBuffers::ReceiveBuffers(int ranks) : chunk_(chunk_floats(ranks)) {
  memory_.resize(static_cast<std::size_t>(chunk_ * kDepth * (ranks - 1)));
}

float* ReceiveBuffers::buffer(int rank, std::int64_t chunk_index) {
  return memory_.data() + (rank * kDepth + chunk_index % kDepth) * chunk_;
}

std::int64_t ReceiveBuffers::size_bytes() const {
  return static_cast<std::int64_t>(memory_.size() * sizeof(float));
}

ExchangeRun::ExchangeRun(World& world, ReceiveBuffers& buffers, Exchange exchange, float* values,
                         std::int64_t count)
    : world_(world),
      buffers_(buffers),
      exchange_(exchange),
      values_(values),
      count_(count),
      peers_(static_cast<std::size_t>(world.size())) {
  const std::int64_t own = chunks(world_.rank());
  for (int rank = 0; rank < world_.size(); ++rank) {
    if (rank == world_.rank()) continue;
    if (reduces()) open_ += own + chunks(rank);
    if (gathers()) open_ += own + chunks(rank);
  }
  if (reduces()) {
    open_ += own;
  } else {
    summed_ = own;
  }
  // With one rank there is nothing to add to.
  if (world_.size() == 1) open_ = 0;
  post_all();
}

std::int64_t ExchangeRun::chunks(int rank) const {
  return (rank_slice(count_, rank, world_.size()).size() + buffers_.chunk() - 1) / buffers_.chunk();
}

Slice ExchangeRun::chunk_of(int rank, std::int64_t chunk) const {
  const Slice slice = rank_slice(count_, rank, world_.size());
  const std::int64_t begin = slice.begin + chunk * buffers_.chunk();
  return {begin, std::min(slice.end, begin + buffers_.chunk())};
}

void ExchangeRun::post(What what, int peer, std::int64_t chunk) {
  const bool of_ours = what == What::piece_in || what == What::sum_out;
  const Slice part = chunk_of(of_ours ? world_.rank() : peer, chunk);
  const std::int64_t bytes = part.size() * static_cast<std::int64_t>(sizeof(float));
  float* place = values_ + part.begin;
  MPI_Request request = MPI_REQUEST_NULL;
  switch (what) {
    case What::piece_out:
      request = world_.send(place, bytes, peer, kPieceTag);
      break;
    case What::piece_in: {
      // Ranks behind us have the place before theirs: ours needs none.
      const int place_of = peer < world_.rank() ? peer : peer - 1;
      request = world_.receive(buffers_.buffer(place_of, chunk), bytes, peer, kPieceTag);
      break;
    }
    case What::sum_out:
      request = world_.send(place, bytes, peer, kSumTag);
      break;
    case What::sum_in:
      request = world_.receive(place, bytes, peer, kSumTag);
      break;
  }
  if (what == What::piece_out || what == What::sum_out) sent_bytes_ += bytes;
  std::size_t at = requests_.size();
  if (free_.empty()) {
    requests_.emplace_back();
    pending_.emplace_back();
  } else {
    at = free_.back();
    free_.pop_back();
  }
  requests_[at] = request;
  pending_[at] = {what, peer, chunk};
}

void ExchangeRun::post_all() {
  // Each begins with the rank behind it, so that not all send to the same one first.
  for (int step = 1; step < world_.size(); ++step) post_peer((world_.rank() + step) % world_.size());
}

void ExchangeRun::post_peer(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  const std::int64_t own = chunks(world_.rank());
  const std::int64_t theirs = chunks(rank);
  if (reduces()) {
    while (peer.pieces_awaited < own && peer.pieces_awaited < summed_ + ReceiveBuffers::kDepth) {
      post(What::piece_in, rank, peer.pieces_awaited++);
    }
    while (peer.pieces_posted < theirs && peer.pieces_posted < peer.pieces_sent + kWindow) {
      post(What::piece_out, rank, peer.pieces_posted++);
    }
  }
  if (!gathers()) return;
  for (; peer.sums_posted < summed_; ++peer.sums_posted) post(What::sum_out, rank, peer.sums_posted);
  // A sum lands where the piece lay that was sent for it, so that must be gone.
  const bool pieces_gone = !reduces() || peer.pieces_sent == theirs;
  if (pieces_gone) {
    for (; peer.sums_awaited < theirs; ++peer.sums_awaited) post(What::sum_in, rank, peer.sums_awaited);
  }
}

void ExchangeRun::complete(const Pending& pending) {
  Peer& peer = peers_[static_cast<std::size_t>(pending.peer)];
  --open_;
  if (pending.what == What::piece_out) ++peer.pieces_sent;
  if (pending.what == What::piece_in) peer.arrived[pending.chunk % ReceiveBuffers::kDepth] = true;
}

bool ExchangeRun::add_next_chunk() {
  if (!reduces() || summed_ == chunks(world_.rank())) return false;
  const std::int64_t place = summed_ % ReceiveBuffers::kDepth;
  for (int rank = 0; rank < world_.size(); ++rank) {
    if (rank != world_.rank() && !peers_[static_cast<std::size_t>(rank)].arrived[place]) return false;
  }
  const Slice part = chunk_of(world_.rank(), summed_);
  std::vector<const float*> pieces;
  for (int rank = 0; rank < world_.size(); ++rank) {
    if (rank == world_.rank()) {
      pieces.push_back(values_ + part.begin);
    } else {
      pieces.push_back(buffers_.buffer(rank < world_.rank() ? rank : rank - 1, summed_));
      peers_[static_cast<std::size_t>(rank)].arrived[place] = false;
    }
  }
  add_in_order(pieces, 1.0F / static_cast<float>(world_.size()), values_ + part.begin, part.size());
  ++summed_;
  --open_;
  return true;
}

bool ExchangeRun::advance() {
  if (requests_.empty()) return false;
  finished_.resize(requests_.size());
  int count = 0;
  check_mpi(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, finished_.data(),
                         MPI_STATUSES_IGNORE));
  // MPI_UNDEFINED: no request is under way.
  if (count == MPI_UNDEFINED || count == 0) return false;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(finished_[static_cast<std::size_t>(i)]);
    complete(pending_[at]);
    free_.push_back(at);
  }
  while (add_next_chunk()) {
  }
  post_all();
  return true;
}

}  // namespace penstock::dist
