#pragma once

#include <cstdint>

#include "base/long_vector.h"
#include "plan/droppable.h"
#include "plan/plan.h"
#include "plan/swap_set.h"

namespace penstock::plan {

/// Chooses what is computed again because the tier has no space for it: gaps from forward to backward that a
/// plan spends on the tier, those first that cost least for the space they free.
class TierDrops {
 public:
  /// `swapping`: a plan that swaps whatever it can; `droppable`: as find_droppable() gives them. The problem
  /// must outlive it.
  TierDrops(const Problem& problem, const Plan& swapping, const LongVector<Droppable>& droppable,
            Recomputer& recomputer);

  /// Enough of them that what is left of that plan's values takes no more than `space_bytes` at any time, if
  /// there are so many. What another is made of is dropped only where nothing else helps.
  SwapSet within(std::int64_t space_bytes) const;
  /// What all of the plan's values take at a time.
  std::int64_t peak_bytes() const { return peak_bytes_; }

 private:
  struct Candidate {
    ir::StorageId storage = ir::kNone;
    std::size_t access = 0;
    std::int64_t bytes = 0;
    std::int64_t first = 0, last = 0;   ///< instructions during which its place would be free
    LongVector<ir::StorageId> made_of;  ///< what must be there to make it anew
  };

  const Problem& problem_;
  LongVector<std::int64_t> taken_;  ///< by instruction
  std::int64_t peak_bytes_ = 0;
  LongVector<Candidate> candidates_;  ///< the cheapest for its bytes first
};

}  // namespace penstock::plan
