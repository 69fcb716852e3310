#pragma once

#include <cstdint>

#include "base/long_vector.h"
#include "plan/step.h"

namespace penstock::plan {

/// Something about each gap of a step. The gap of a use reaches to the storage's next use; that of the last
/// use of state reaches over the boundary to the first use of the next step. By storage and index of the use.
template <typename T>
class GapMap {
 public:
  /// Of the problem's ops in the order of the graph.
  explicit GapMap(const Problem& problem, T value = T()) {
    first_.reserve(problem.storages.size() + 1);
    first_.push_back(0);
    for (const StorageInfo& storage : problem.storages) {
      first_.push_back(first_.back() + static_cast<std::uint32_t>(storage.accesses.size()));
    }
    values_.assign(first_.back(), value);
  }
  explicit GapMap(const Step& step, T value = T())
      : first_(step.first_access()), values_(step.first_access().back(), value) {}

  const T& at(ir::StorageId s, std::size_t access) const { return values_[index(s, access)]; }
  T& at(ir::StorageId s, std::size_t access) { return values_[index(s, access)]; }
  bool contains(ir::StorageId s, std::size_t access) const { return values_[index(s, access)] != T(); }
  void set(ir::StorageId s, std::size_t access, T value) { values_[index(s, access)] = value; }
  /// Takes over what another map of the same step has set.
  void add(const GapMap& other) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (other.values_[i] != T()) values_[i] = other.values_[i];
    }
  }

 private:
  std::size_t index(ir::StorageId s, std::size_t access) const {
    return first_[static_cast<std::size_t>(s)] + access;
  }

  LongVector<std::uint32_t> first_;  ///< of each storage's gaps
  LongVector<T> values_;
};

/// A set of gaps: those that are spent on the tier, say.
using SwapSet = GapMap<std::uint8_t>;

// `Storage`: StorageInfo or StorageUses.

/// Whether the gap of this use crosses the boundary.
template <typename Storage>
bool is_wrap(const Storage& storage, std::size_t access) {
  return access + 1 == storage.accesses.size();
}
/// Whether the value is needed after this use.
template <typename Storage>
bool is_needed_after(const Storage& storage, std::size_t access) {
  return is_wrap(storage, access) ? storage.carried : storage.accesses[access + 1].reads;
}

/// The memory that each position of the step finds in use if swapped gaps take none.
LongVector<std::int64_t> base_memory(const Step& step, const SwapSet& swaps);

}  // namespace penstock::plan
