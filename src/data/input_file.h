#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock {

/// A file open for reading at given offsets; owns its descriptor. Any thread may read.
class InputFile {
 public:
  /// Throws UserError if the file is missing, not permitted or not a regular file.
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

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_bytes_ = 0;
};

/// Text out of a file, fit for a one-line message: control characters become '?', long text is cut.
std::string printable(std::string_view text);

}  // namespace penstock
