#pragma once

#include <cstdint>
#include <vector>

#include "plan/problem.h"
#include "plan/profile.h"

namespace penstock::plan {

/// An op to be run again right before an op of the step.
struct Rerun {
  ir::OpId op = ir::kNone;
  ir::OpId before = ir::kNone;
  bool operator==(const Rerun&) const = default;
};

/// The same problem over a longer step, in which ops run again; several before the same op in the order
/// given. A value that an op makes anew is not needed before. Only for policies: checker and simulator see
/// the plan with the problem as it was made.
Problem with_reruns(const Problem& problem, const std::vector<Rerun>& reruns);

/// A storage whose value need not be held between two uses, because it can be computed again before the
/// second.
struct Recomputation {
  ir::StorageId storage = ir::kNone;
  std::int32_t access = 0;    ///< the use (index into its accesses) before which it is computed again
  std::vector<ir::OpId> ops;  ///< in the order to run
  double seconds = 0;
};

/// Every such gap of every storage that is not state, where what the ops read is still what it was and is
/// needed later anyway, or is computed again as well, within `max_ops` ops.
std::vector<Recomputation> find_recomputations(const Problem& problem, const Profile& profile,
                                               int max_ops = 4);

}  // namespace penstock::plan
