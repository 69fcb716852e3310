#pragma once

#include <cstdint>

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
  /// rounds, as long as a round gains and the contest allows more plans. Leaves the best.
  void search(Trial& trial);

 private:
  enum class Change : std::uint8_t { drop, restore, hold, pass };
  struct Move {
    double gain_seconds;
    std::size_t family;
    Change change;
  };
  /// Storages that differ in the slice alone, or their gaps between two ops that do so.
  struct Family {
    LongVector<std::size_t> gaps;  ///< of droppable_
    LongVector<ir::StorageId> storages;
  };

  LongVector<Move> moves(const Trial& trial) const;
  double drop_gain(const Trial& trial, const Family& family) const;
  void apply(const Move& move, Trial& trial) const;
  void run(Trial& changed, Trial& best);

  Trials& trials_;
  const LongVector<Droppable>& droppable_;
  LongVector<Family> gap_families_, value_families_;
};

}  // namespace penstock::plan
