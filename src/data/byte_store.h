#pragma once

#include <cstdint>
#include <vector>

#include "base/input_file.h"

namespace penstock {

/// Byte records of one size, either in memory or at regular places of files. Immutable once filled: any
/// thread may read.
class ByteStore {
 public:
  /// Records one after another in memory; bytes.size() is a multiple of record_bytes.
  ByteStore(std::vector<std::uint8_t> bytes, std::int64_t record_bytes);
  /// No records yet; add_file() brings them.
  explicit ByteStore(std::int64_t record_bytes);

  /// Appends `count` records, the first at offset_bytes of the file, then one each stride_bytes.
  void add_file(InputFile file, std::int64_t offset_bytes, std::int64_t stride_bytes, std::int64_t count);

  std::int64_t size() const { return size_; }
  std::int64_t record_bytes() const { return record_bytes_; }
  std::int64_t resident_bytes() const { return static_cast<std::int64_t>(bytes_.size()); }
  void read(std::int64_t index, std::uint8_t* to) const;

 private:
  struct Part {
    InputFile file;
    std::int64_t first;
    std::int64_t offset_bytes;
    std::int64_t stride_bytes;
  };

  std::int64_t record_bytes_;
  std::int64_t size_ = 0;
  std::vector<std::uint8_t> bytes_;
  std::vector<Part> parts_;
};

}  // namespace penstock
