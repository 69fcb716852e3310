#pragma once

#include <functional>

#include "base/long_vector.h"
#include "plan/plan.h"
#include "run/residency.h"

namespace penstock::run {

/// Moves state between steps: to where a plan's boundary wants it, and into memory for somebody who reads or
/// writes it, within the pool's capacity. Knows which storages are state: those that were written. One
/// thread.
class StateMover {
 public:
  explicit StateMover(Residency& residency, int storages);

  void write(ir::StorageId s, const std::function<void(void*)>& fill);
  void read(ir::StorageId s, const std::function<void(const void*)>& use);
  /// Lets `use` have the memory of a storage that is not state; what it holds is undefined before and lost
  /// after.
  void borrow(ir::StorageId s, const std::function<void(void*)>& use);
  /// Makes everything as the boundary says; state that it does not name goes to the tier.
  void settle(const plan::Boundary& boundary);
  void wait_for_all();

 private:
  /// Writes out what the tier does not have, then gives the memory back.
  void evict(const LongVector<ir::StorageId>& storages);
  void make_room_for(ir::StorageId s);
  void bring_in(ir::StorageId s);

  Residency& residency_;
  LongVector<ir::StorageId> known_;  ///< in the order of their first writing
  LongVector<bool> is_known_;
};

}  // namespace penstock::run
