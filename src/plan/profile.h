#pragma once

#include <cstdint>
#include <string>

#include "ir/op.h"
#include "plan/op_seconds.h"

namespace penstock::plan {

/// How fast a tier is. Bandwidths in bytes per second, above 0.
struct TierProfile {
  double read_bandwidth = 2e9;           ///< while nothing is written
  double write_bandwidth = 2e9;          ///< while nothing is read
  double read_bandwidth_together = 1e9;  ///< while both go on
  double write_bandwidth_together = 1e9;
  double latency_seconds = 1e-4;  ///< of a request, beside its bytes; those of several overlap
  bool serves_waiting_first =
      true;  ///< what is waited for overtakes all else; otherwise each direction is first come, first served
  bool operator==(const TierProfile&) const = default;
};

/// How fast ranks exchange arrays over the link between them; see ir::ExchangeKind. Exchanges follow one
/// another.
struct LinkProfile {
  int ranks = 1;
  double bandwidth = 1e9;      ///< bytes per second of one rank, each way; above 0
  double latency_seconds = 0;  ///< of an exchange, beside its bytes
  double message_seconds = 0;  ///< more for each rank that a slice is sent to

  double seconds(ir::ExchangeKind kind, std::int64_t size_bytes) const;
  bool operator==(const LinkProfile&) const = default;
};

/// What the thread that computes spends beside the ops.
struct HostProfile {
  double mapping_seconds = 0;            ///< of a move of memory from one storage to another
  double mapping_seconds_per_byte = 0;   ///< more for each byte that moves
  double moves_each = 1;                 ///< how often memory is moved to give a storage or scratch some
  double moved_share = 1;                ///< how much of what they are given has to move
  double transfer_seconds = 0;           ///< to start a transfer
  double transfer_seconds_per_byte = 0;  ///< by which ops are slower beside transfers, for each byte moved
  bool operator==(const HostProfile&) const = default;
};

/// Measured (or estimated) times of one graph's ops, of a tier and of the link between ranks. Plain data.
struct Profile {
  OpSeconds op_seconds;  ///< by op, then by variant
  TierProfile tier;
  LinkProfile link;
  HostProfile host;
  bool measured = false;  ///< otherwise an estimate

  double seconds(ir::OpId op, std::int32_t variant = 0) const {
    return op_seconds.at(static_cast<std::size_t>(op), static_cast<std::size_t>(variant));
  }
};

/// The profile as JSON: {"version": 1, "measured": bool, "op_seconds": [[s, ...], ...],
/// "host": {...}, "tier": {...}, "link": {...}}, keys of host, tier and link as the members above. A
/// file without a link is of one rank.
std::string profile_to_json(const Profile& profile);
/// Throws UserError that names `source` if the text is not such a profile.
Profile profile_from_json(const std::string& text, const std::string& source);

}  // namespace penstock::plan
