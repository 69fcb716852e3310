#pragma once

#include <cstdint>
#include <string>

namespace penstock {

/// A file open for reading at given offsets; owns its descriptor. Any thread may read.
class InputFile {
 public:
  /// Throws UserError if the file is missing, not permitted or not a regular file (a pipe is never waited
  /// for), RunError if the disk fails.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t size_bytes() const { return size_bytes_; }

  /// Reads exactly size_bytes; throws UserError if the file ends before, RunError if the disk fails.
  void read_at(std::int64_t offset_bytes, void* to, std::int64_t size_bytes) const;

  /// Reads up to size_bytes: how many it got, fewer only at the end of the file, or -errno. For callers that
  /// cannot let an exception pass.
  std::int64_t try_read_at(std::int64_t offset_bytes, void* to, std::int64_t size_bytes) const noexcept;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_bytes_ = 0;
};

}  // namespace penstock
