#pragma once

#include <cstdint>
#include <span>

#include "base/long_vector.h"
#include "plan/problem.h"

namespace penstock::plan {

/// An op to be run again right before an op of the step.
struct Rerun {
  ir::OpId op = ir::kNone;
  ir::OpId before = ir::kNone;
  bool operator==(const Rerun&) const = default;
};

/// What a policy asks about a storage: sizes, and its uses in the order of a Step.
struct StorageUses {
  std::int64_t size_bytes = 0;
  std::int64_t footprint_bytes = 0;
  bool swappable = false;
  bool carried = false;
  std::span<const Access> accesses;
};

/// The order in which ops run, some of them again: what policies plan over. Checker and simulator see the
/// plan with the problem alone. A value that an op makes anew is not needed before. The problem must outlive
/// it.
class Step {
 public:
  /// Several reruns before the same op are in the order given. With `adopting`, an op writes over what it may
  /// and nobody needs any more before it is made anew.
  explicit Step(const Problem& problem, const LongVector<Rerun>& reruns = {}, bool adopting = false);

  const Problem& problem() const { return *problem_; }
  Position positions() const { return static_cast<Position>(order_.size()); }
  ir::OpId op(Position position) const { return order_[static_cast<std::size_t>(position)]; }
  StepOp at(Position position) const { return problem_->op(op(position)); }
  /// What the op writes over at this position.
  std::span<const Overwrite> adopts(Position position) const {
    if (first_adopt_.empty()) return {};
    const auto p = static_cast<std::size_t>(position);
    return std::span(adopts_).subspan(first_adopt_[p], first_adopt_[p + 1] - first_adopt_[p]);
  }

  std::size_t storages() const { return problem_->storages.size(); }
  StorageUses storage(ir::StorageId s) const {
    const StorageInfo& info = problem_->storage(s);
    return {info.size_bytes, info.footprint_bytes, info.swappable, info.carried, accesses(s)};
  }
  std::span<const Access> accesses(ir::StorageId s) const {
    const auto i = static_cast<std::size_t>(s);
    return std::span(accesses_).subspan(first_access_[i], first_access_[i + 1] - first_access_[i]);
  }
  /// By storage: how many accesses those before it have; one entry more than storages.
  const LongVector<std::uint32_t>& first_access() const { return first_access_; }

 private:
  void find_accesses();
  void find_adopts();

  const Problem* problem_;
  LongVector<ir::OpId> order_;
  LongVector<Access> accesses_;  ///< by storage, in order
  LongVector<std::uint32_t> first_access_;
  LongVector<Overwrite> adopts_;  ///< by position
  LongVector<std::uint32_t> first_adopt_;
};

}  // namespace penstock::plan
