#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/long_vector.h"
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

/// How large a pool is. Small slots of a virtual pool, and all slots of a packed one, lie in memory that
/// stays where it is; other slots have addresses, beneath which memory moves.
struct PoolSize {
  std::int64_t pool_bytes = 0;     ///< all that it takes, page tables included that the margin does not bear
  std::int64_t small_bytes = 0;    ///< memory that stays
  std::int64_t paged_bytes = 0;    ///< memory that moves
  std::int64_t address_bytes = 0;  ///< addresses for that

  /// Whether a layout of that size fits a pool of this one.
  bool holds(const PoolSize& other) const {
    return other.small_bytes <= small_bytes && other.paged_bytes <= paged_bytes &&
           other.address_bytes <= address_bytes;
  }
  bool operator==(const PoolSize&) const = default;
};

/// With pool_bytes as the others make it.
PoolSize pool_size(std::int64_t small_bytes, std::int64_t paged_bytes, std::int64_t address_bytes);

/// Where everything goes in a pool when plans are followed.
struct Layout {
  PoolSize size;  ///< how large the pool must be
  /// By slot: where it is between steps; kAnywhere: it never is in memory then.
  LongVector<std::int64_t> homes;
  /// By step, in the order in which its plan gives memory: where.
  LongVector<LongVector<std::int64_t>> offsets;
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
  /// slot, offsets in a pool that is there which must stay as they are (kAnywhere: free to choose); empty:
  /// the pool is a new one.
  virtual Layout lay_out(std::span<const PlannedStep> steps, const LongVector<std::int64_t>& fixed) const = 0;
  /// The profile, knowing how often this pool moves memory when the plan is followed.
  virtual plan::Profile with_moves(plan::Profile profile, const PlannedStep& planned,
                                   const PoolSize& size) const = 0;
  /// By this factor kernels are slower than on memory that never moves.
  virtual double slowdown() const = 0;
  virtual std::unique_ptr<Pool> make_pool(const PoolSize& size) const = 0;
  /// One line on what this machine lacks for it; empty where nothing is.
  virtual std::string remark() const = 0;
  /// The pool size that the rounding was made for; 0 where rounding does not depend on it.
  virtual std::int64_t rounding_bytes() const = 0;
  /// The unit of memory that moves; 0 where none does.
  virtual std::int64_t grain_bytes() const = 0;
};

/// Any free page serves any storage: it holds the most, and moving pages takes time. Rounds as a pool of
/// `rounding_bytes` does.
std::shared_ptr<const PoolModel> make_virtual_model(const StorageMap& map, std::int64_t rounding_bytes);
/// One arena where nothing moves; gaps between offsets are lost.
std::shared_ptr<const PoolModel> make_packed_model(const StorageMap& map);

}  // namespace penstock::fit
