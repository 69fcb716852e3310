#pragma once

#include <cstdint>
#include <vector>

#include "base/slices.h"
#include "dist/communicator.h"
#include "dist/mpi/world.h"

namespace penstock::dist {

/// Where pieces of other ranks are received before they are added: two chunks from each.
class ReceiveBuffers {
 public:
  static constexpr int kDepth = 2;

  explicit ReceiveBuffers(int ranks);

  /// Floats that are sent at a time.
  std::int64_t chunk() const { return chunk_; }
  float* buffer(int rank, std::int64_t chunk_index);
  std::int64_t size_bytes() const;
  /// The same without one at hand.
  static std::int64_t chunk_floats(int ranks);

 private:
  std::int64_t chunk_;
  std::vector<float> memory_;
};

/// One exchange on its way. Every rank sends each other rank's slice straight to its owner in chunks; the
/// owner adds what it got in the order of the ranks and (all_reduce) sends the sum to all. World and buffers
/// must outlive it; nothing else uses the buffers meanwhile. The communication thread calls it.
class ExchangeRun {
 public:
  ExchangeRun(World& world, ReceiveBuffers& buffers, Exchange exchange, float* values, std::int64_t count);

  /// Looks for what has arrived and goes on with it; returns whether there was anything.
  bool advance();
  bool done() const { return open_ == 0; }
  std::int64_t sent_bytes() const { return sent_bytes_; }

 private:
  enum class What : std::uint8_t { piece_out, piece_in, sum_out, sum_in };
  struct Pending {
    What what;
    int peer;
    std::int64_t chunk;
  };
  /// What has gone to, and come from, one other rank, in chunks.
  struct Peer {
    std::int64_t pieces_posted = 0, pieces_sent = 0;        ///< of its slice, to it
    std::int64_t pieces_awaited = 0;                        ///< of our slice, from it: receives posted
    bool arrived[ReceiveBuffers::kDepth] = {false, false};  ///< by buffer
    std::int64_t sums_posted = 0;                           ///< of our slice, to it
    std::int64_t sums_awaited = 0;                          ///< of its slice, from it
  };

  std::int64_t chunks(int rank) const;
  Slice chunk_of(int rank, std::int64_t chunk) const;
  bool reduces() const { return exchange_ != Exchange::all_gather; }
  bool gathers() const { return exchange_ != Exchange::reduce_scatter; }
  void post(What what, int peer, std::int64_t chunk);
  void post_all();
  void post_peer(int rank);
  void complete(const Pending& pending);
  bool add_next_chunk();

  World& world_;
  ReceiveBuffers& buffers_;
  Exchange exchange_;
  float* values_;
  std::int64_t count_;
  std::vector<Peer> peers_;  ///< by rank; our own is not used
  std::int64_t summed_ = 0;  ///< chunks of our slice that are complete
  std::int64_t open_ = 0;    ///< what is still to be done: messages, and sums of our own
  std::int64_t sent_bytes_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<Pending> pending_;   ///< of each request
  std::vector<std::size_t> free_;  ///< places of requests_ that are not in use
  std::vector<int> finished_;
};

}  // namespace penstock::dist
