#pragma once

#include <cstdint>
#include <span>

#include "base/long_vector.h"
#include "plan/droppable.h"
#include "plan/trials.h"

namespace penstock::plan {

/// Changes the mind about whole families: the same gap of all slices of a tensor is dropped or not at once,
/// and all of them are held or pass. A single slice of a batch that is cut into many gains next to nothing,
/// so a search over gaps one by one does not see what the family would gain. All that it is given must
/// outlive it.
class FamilySearch {
 public:
  FamilySearch(Trials& trials, const LongVector<Droppable>& droppable);

  /// Changes one family after the other, what promises most first, and keeps what makes the step shorter, in
  /// rounds, as long as a round gains; then halves of families. Leaves the best; stops where the contest
  /// allows no more plans.
  void search(Trial& trial);

 private:
  enum class Change : std::uint8_t { drop, restore, hold, pass };
  /// Storages that differ in the slice alone, or, as indices of droppable_, their gaps between two ops that
  /// do so. In the order of the slices.
  using Gaps = LongVector<std::size_t>;
  using Values = LongVector<ir::StorageId>;
  struct Move {
    double gain_seconds;
    Change change;
    std::span<const std::size_t> gaps;
    std::span<const ir::StorageId> values;
  };

  LongVector<Move> moves(const Trial& trial, std::size_t parts) const;
  void add_gap_moves(const Trial& trial, std::span<const std::size_t> gaps, LongVector<Move>& found) const;
  void add_value_moves(const Trial& trial, std::span<const ir::StorageId> values,
                       LongVector<Move>& found) const;
  void apply(const Move& move, Trial& trial) const;
  void run(Trial& changed, Trial& best);
  void bid(Trial& best);

  Trials& trials_;
  const LongVector<Droppable>& droppable_;
  LongVector<Gaps> gap_families_;
  LongVector<Values> value_families_;
};

}  // namespace penstock::plan
