#pragma once

#include <cstdint>
#include <string>

struct gzFile_s;

namespace penstock {

/// Reads a file from its beginning, inflating it if it is gzipped. One thread at a time.
class GzipReader {
 public:
  /// Throws UserError if the file is missing.
  explicit GzipReader(std::string path);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  bool gzipped() const { return gzipped_; }

  /// No content can be larger than this: the file's size, times deflate's best ratio if gzipped.
  std::int64_t largest_content_bytes() const { return largest_content_bytes_; }

  /// Reads exactly size_bytes; throws UserError if the content ends before or is damaged.
  void read(void* to, std::int64_t size_bytes);

  /// Throws UserError unless the content ends here with a correct checksum.
  void expect_end();

 private:
  /// Returns the bytes got, fewer than asked only at the end of the content.
  std::int64_t read_some(void* to, std::int64_t size_bytes);

  std::string path_;
  gzFile_s* stream_ = nullptr;
  bool gzipped_ = false;
  std::int64_t largest_content_bytes_ = 0;
};

}  // namespace penstock
