#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock {

/// What is smaller than this is never paged.
inline constexpr std::size_t kLeastPagedBytes = std::size_t{256} << 10;

/// While one of these is there, large blocks of allocate_paged() lie in files without a name, and no more
/// than some bytes of them are resident: a thread looks every millisecond how much there is, and gives all
/// pages back where it is too much. What is used again comes back from the file, mostly out of the system's
/// page cache, which the system may empty. So the description of a step, which can be larger than all its
/// memory, needs next to none. Who uses such a block need not know of it.
///
/// A process may have several, then the least of their bytes holds. Blocks may outlive it; those that are
/// made later are of the heap.
class PagedMemory {
 public:
  /// `folder`: where the files are; empty, in memory or not writable: nothing is paged. Nor is it where the
  /// system gives no thread.
  PagedMemory(std::string folder, std::int64_t resident_bytes);
  ~PagedMemory();
  PagedMemory(const PagedMemory&) = delete;
  PagedMemory& operator=(const PagedMemory&) = delete;

  /// Whether blocks are paged.
  bool works() const { return works_; }

 private:
  bool works_ = false;
  std::string folder_;
  std::int64_t resident_bytes_ = 0;
};

/// Like operator new. Large blocks are paged while there is a PagedMemory and its disk has room.
void* allocate_paged(std::size_t bytes);
void free_paged(void* block, std::size_t bytes) noexcept;

/// How much there is in blocks that are paged, resident or not.
std::int64_t paged_bytes();
/// Gives the pages of all of them back: what is resident then is what is not paged.
void evict_paged();

}  // namespace penstock
