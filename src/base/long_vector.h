#pragma once

#include <cstddef>
#include <limits>
#include <new>
#include <vector>

#include "base/paged_memory.h"

namespace penstock {

/// Takes large blocks from paged memory (PagedMemory), small ones from the heap.
template <typename T>
class PagedAllocator {
 public:
  using value_type = T;
  static_assert(alignof(T) <= alignof(std::max_align_t));

  PagedAllocator() = default;
  template <typename U>
  PagedAllocator(const PagedAllocator<U>& /*other*/) noexcept {}

  T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / kSize) throw std::bad_array_new_length();
    return static_cast<T*>(allocate_paged(count * kSize));
  }
  void deallocate(T* block, std::size_t count) noexcept { free_paged(block, count * kSize); }

  template <typename U>
  bool operator==(const PagedAllocator<U>& /*other*/) const noexcept {
    return true;
  }

 private:
  static constexpr std::size_t kSize = sizeof(T);  // NOLINT(bugprone-sizeof-expression): it may be a pointer
};

/// A vector with an entry for each op, storage or instruction of a step. A step may have hundreds of
/// thousands of these; where memory is short, such vectors live on disk (PagedMemory).
template <typename T>
using LongVector = std::vector<T, PagedAllocator<T>>;

}  // namespace penstock
