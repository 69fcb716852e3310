#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fit/storage_map.h"
#include "lower/lower.h"
#include "memory/pool.h"
#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/profile.h"

namespace penstock::fit {

/// A step and a plan of it.
struct PlannedStep {
  const lower::Executable* step = nullptr;
  const plan::Problem* problem = nullptr;
  const plan::Plan* plan = nullptr;
};

/// Where everything goes in a pool when plans are followed.
struct Layout {
  std::int64_t pool_bytes = 0;  ///< how large the pool must be
  /// By slot: where it is between steps; empty for a pool that places slots itself.
  std::vector<std::int64_t> homes;
  /// By step, in the order in which its plan gives memory: where; empty for a pool that places slots itself.
  std::vector<std::vector<std::int64_t>> offsets;
};

/// What planning has to know of a kind of pool, and how to make one. A model is made for a storage map, which
/// must outlive it. Immutable.
class PoolModel {
 public:
  virtual ~PoolModel() = default;

  /// "virtual" or "packed".
  virtual std::string_view name() const = 0;
  /// How storages and scratch are rounded, and what of `given_bytes` is left for them.
  virtual plan::PoolRule rule(std::int64_t given_bytes) const = 0;
  /// Where plans that were made with rule() put everything, and how large the pool then must be. `fixed`: by
  /// slot, offsets that must stay as they are (kAnywhere: free to choose); empty: none.
  virtual Layout lay_out(std::span<const PlannedStep> steps,
                         const std::vector<std::int64_t>& fixed) const = 0;
  /// The profile, knowing how often this pool moves memory when the plan is followed.
  virtual plan::Profile with_moves(plan::Profile profile, const PlannedStep& planned,
                                   std::int64_t pool_bytes) const = 0;
  /// By this factor kernels are slower than on memory that never moves.
  virtual double slowdown() const = 0;
  virtual std::unique_ptr<Pool> make_pool(std::int64_t pool_bytes) const = 0;
  /// One line on what this machine lacks for it; empty where nothing is.
  virtual std::string remark() const = 0;
  /// The pool size that the rounding was made for; 0 where rounding does not depend on it.
  virtual std::int64_t rounding_bytes() const = 0;
};

/// Any free page serves any storage: it holds the most, and moving pages takes time. Rounds as a pool of
/// `rounding_bytes` does.
std::shared_ptr<const PoolModel> make_virtual_model(const StorageMap& map, std::int64_t rounding_bytes);
/// One arena where nothing moves; gaps between offsets are lost.
std::shared_ptr<const PoolModel> make_packed_model(const StorageMap& map);

}  // namespace penstock::fit
