#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace penstock {

/// The ranges of offsets that are held in a pool; no two overlap.
class HeldRanges {
 public:
  bool is_free(std::int64_t offset, std::int64_t size_bytes) const {
    const auto next = ends_.lower_bound(offset);
    return (next == ends_.end() || offset + size_bytes <= next->first) &&
           (next == ends_.begin() || std::prev(next)->second <= offset);
  }
  /// The range must be free.
  void add(std::int64_t offset, std::int64_t size_bytes) { ends_.emplace(offset, offset + size_bytes); }
  /// Gives the range back that begins there, and returns its size; 0: none does.
  std::int64_t remove(std::int64_t offset) {
    const auto found = ends_.find(offset);
    if (found == ends_.end()) return 0;
    const std::int64_t size_bytes = found->second - offset;
    ends_.erase(found);
    return size_bytes;
  }
  /// The end of the highest.
  std::int64_t end() const { return ends_.empty() ? 0 : ends_.rbegin()->second; }

 private:
  std::map<std::int64_t, std::int64_t> ends_;  // by offset
};

}  // namespace penstock
