#pragma once

#include <cstdint>
#include <string>

#include "tier/file_io.h"

namespace penstock {

/// A file without a name, readable by its owner only, with all of its space allocated: it vanishes with the
/// process, however that ends. Closed by the destructor.
class SwapFile {
 public:
  /// A file in `directory`, opened for direct I/O where the file system can. Throws UserError when it cannot
  /// be made or the space is not there (needed, there).
  static SwapFile on_disk(const std::string& directory, std::int64_t size_bytes, FileIo& io);
  /// A file in memory that is not part of this process's resident set.
  static SwapFile in_memory(std::int64_t size_bytes, FileIo& io);

  SwapFile(SwapFile&& other) noexcept;
  SwapFile& operator=(SwapFile&&) = delete;
  SwapFile(const SwapFile&) = delete;
  SwapFile& operator=(const SwapFile&) = delete;
  ~SwapFile();

  int descriptor() const { return descriptor_; }
  /// Whether transfers pass by the page cache.
  bool direct() const { return direct_; }
  /// Whether the file system promised the space.
  bool reserved() const { return reserved_; }

 private:
  SwapFile(int descriptor, bool direct) : descriptor_(descriptor), direct_(direct) {}

  int descriptor_;
  bool direct_;
  bool reserved_ = true;
};

}  // namespace penstock
