#pragma once

#include <cstdint>
#include <vector>

#include "plan/problem.h"

namespace penstock::plan {

/// Something about each gap of a step. The gap of a use reaches to the storage's next use; that of the last
/// use of state reaches over the boundary to the first use of the next step. By storage and index of the use.
template <typename T>
class GapMap {
 public:
  explicit GapMap(const Problem& problem, T value = T()) {
    std::size_t total = 0;
    for (const StorageInfo& storage : problem.storages) {
      first_.push_back(total);
      total += storage.accesses.size();
    }
    values_.assign(total, value);
  }

  const T& at(ir::StorageId s, std::size_t access) const { return values_[index(s, access)]; }
  T& at(ir::StorageId s, std::size_t access) { return values_[index(s, access)]; }
  bool contains(ir::StorageId s, std::size_t access) const { return values_[index(s, access)] != T(); }
  void set(ir::StorageId s, std::size_t access, T value) { values_[index(s, access)] = value; }

 private:
  std::size_t index(ir::StorageId s, std::size_t access) const {
    return first_[static_cast<std::size_t>(s)] + access;
  }

  std::vector<std::size_t> first_;  ///< of each storage's gaps
  std::vector<T> values_;
};

/// A set of gaps: those that are spent on the tier, say.
using SwapSet = GapMap<std::uint8_t>;

/// Whether the gap of this use crosses the boundary.
inline bool is_wrap(const StorageInfo& storage, std::size_t access) {
  return access + 1 == storage.accesses.size();
}
/// Whether the value is needed after this use.
inline bool is_needed_after(const StorageInfo& storage, std::size_t access) {
  return is_wrap(storage, access) ? storage.carried : storage.accesses[access + 1].reads;
}

/// The memory that each position of the step finds in use if swapped gaps take none.
std::vector<std::int64_t> base_memory(const Problem& problem, const SwapSet& swaps);

}  // namespace penstock::plan
