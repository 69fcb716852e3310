#pragma once

#include <cstdint>
#include <vector>

#include "plan/memory_curve.h"
#include "plan/problem.h"

namespace penstock::plan {

/// Which gaps are spent on the tier. The gap of a use reaches to the storage's next use; that of the last use
/// of state reaches over the boundary to the first use of the next step. Plain data, by storage and index of
/// the use.
class SwapSet {
 public:
  explicit SwapSet(const Problem& problem);

  bool contains(ir::StorageId s, std::size_t access) const { return flags_[index(s, access)] != 0; }
  void set(ir::StorageId s, std::size_t access, bool swapped) { flags_[index(s, access)] = swapped ? 1 : 0; }

 private:
  std::size_t index(ir::StorageId s, std::size_t access) const {
    return first_[static_cast<std::size_t>(s)] + access;
  }

  std::vector<std::size_t> first_;  ///< of each storage's flags
  std::vector<std::uint8_t> flags_;
};

/// Whether the value is needed after this use.
bool is_needed_after(const StorageInfo& storage, std::size_t access);
/// Whether the gap of this use crosses the boundary.
inline bool is_wrap(const StorageInfo& storage, std::size_t access) {
  return access + 1 == storage.accesses.size();
}

/// Adds the memory that each position of the step finds in use if swapped gaps take none, the first position
/// at `offset`.
void add_base_memory(const Problem& problem, const SwapSet& swaps, MemoryCurve& curve,
                     std::int64_t offset = 0);

}  // namespace penstock::plan
