#pragma once

#include <cstdint>

#include "base/long_vector.h"
#include "plan/evictions.h"
#include "plan/profile.h"
#include "plan/reruns.h"

namespace penstock::plan {

/// A gap whose value can be made anew.
struct Droppable {
  ir::StorageId storage = ir::kNone;
  std::size_t access = 0;
  double seconds = 0;         ///< to make it anew
  double least_seconds = 0;   ///< even if all that it takes is made anew as well
  double source_seconds = 0;  ///< to read what it is made of, as far as nobody uses that about then anyway
  double write_seconds = 0;   ///< to swap it instead
  double read_seconds = 0;
  ir::OpId from = ir::kNone, to = ir::kNone;  ///< its two uses
};

/// Which gaps may be dropped: those from forward to backward, or also those within a phase, which are long
/// where the batch is cut and much else lies between two uses of a slice.
enum class DropGaps : std::uint8_t { between_phases, all };

/// All of them, the cheapest for the transfers that they save first.
LongVector<Droppable> find_droppable(const Problem& problem, const Profile& profile, Recomputer& recomputer,
                                     DropGaps gaps = DropGaps::between_phases);

/// Storages that hold what a chain of ops reads and does not make itself; not state, which is there.
LongVector<ir::StorageId> sources_of(const Problem& problem, const LongVector<ir::OpId>& chain);

/// Puts those first that cost least for their bytes where transfers have these prices: making them anew and
/// reading what that takes, less the transfers that this saves.
void sort_by_cost(LongVector<Droppable>& droppable, const TransferPrices& prices);

/// Sets of values (by storage) that may pass, see Trial::passing: none, and those that take a large part of
/// the memory, for several sizes of that part.
LongVector<LongVector<OnTheWay>> passing_sets(const Problem& problem, const LongVector<Droppable>& droppable);

}  // namespace penstock::plan
