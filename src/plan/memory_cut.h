#pragma once

#include <cstdint>
#include <utility>

#include "base/long_vector.h"
#include "plan/problem.h"
#include "plan/profile.h"

namespace penstock::plan {

/// Seconds per byte read and per byte written such that no mix of transfers takes less than their sum.
struct TierPrice {
  double read = 0, write = 0;
};

/// The sharpest of them: the edges of what the tier can do in a second.
LongVector<TierPrice> tier_prices(const TierProfile& tier);

/// By op, its fastest variant.
LongVector<double> fastest_seconds(const Profile& profile);

/// Which ops an op needs and which need it.
class Dependencies {
 public:
  /// The graph must outlive it.
  explicit Dependencies(const ir::Graph& graph);

  const Rows<ir::OpId>& consumers() const { return consumers_; }
  /// By op: -1 if `op` depends on it, 1 if it depends on `op`, 0 otherwise and for `op` itself.
  LongVector<std::int8_t> sides(ir::OpId op) const;

 private:
  const ir::Graph& graph_;
  Rows<ir::OpId> consumers_;  ///< by tensor
};

/// The memory argument of lower_bound() (bound.h) for one op. Its arguments must outlive it.
class MemoryCut {
 public:
  MemoryCut(const Problem& problem, const LongVector<double>& op_seconds, const LongVector<TierPrice>& tier,
            const Dependencies& dependencies, ir::OpId op);

  /// 0 if all that is live fits.
  double bound_seconds();

 private:
  /// A live value, and what being without memory costs it. "Any part": before or after the op, as the plan
  /// likes.
  struct Live {
    double footprint_bytes = 0;
    double moved_bytes = 0;
    bool movable = false;
    bool written = false, written_any_part = false;
    bool read = false, read_any_part = false;
    double rerun_seconds = 0;  ///< for each byte of footprint; infinite where its op cannot run again
  };
  /// How much compute weighs in the parts before and after; the tier weighs the rest.
  struct Weights {
    double before = 0, after = 0;
  };

  void collect(const Dependencies& dependencies, ir::OpId op);
  Live describe(ir::StorageId s, ir::TensorId value, bool read_after) const;
  LongVector<double> space_prices() const;
  double bound_at_price();
  double seconds_at(const Weights& weights, const TierPrice& before, const TierPrice& after);
  /// The least that giving up enough costs, by the entries (price per byte, bytes) of prices_.
  double least_cost();

  const Problem& problem_;
  const LongVector<double>& op_seconds_;
  const LongVector<TierPrice>& tier_;
  LongVector<Live> live_;
  double own_seconds_ = 0, before_seconds_ = 0, after_seconds_ = 0, free_seconds_ = 0;
  double excess_bytes_ = 0;
  double space_price_ = 0;  ///< of a byte on the tier, see bound.h
  LongVector<std::pair<double, double>> prices_;
};

}  // namespace penstock::plan
