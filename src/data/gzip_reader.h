#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/input_file.h"

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

  /// The rest of the content, which is to be size_bytes. Takes memory only as the content is there, and
  /// throws UserError at once if it would be more than limit_bytes.
  std::vector<std::uint8_t> read_all(std::int64_t size_bytes, std::int64_t limit_bytes);

  /// Throws UserError unless the content ends here with a correct checksum.
  void expect_end();

 private:
  /// Returns the bytes got, fewer than asked only at the end of the content.
  std::int64_t read_some(void* to, std::int64_t size_bytes);

  std::int64_t inflate_some(void* to, std::int64_t size_bytes);
  /// Fills the buffer of compressed bytes; false at the end of the file.
  bool refill();

  struct Inflater;

  InputFile file_;
  std::int64_t position_bytes_ = 0;
  bool gzipped_ = false;
  std::unique_ptr<Inflater> inflater_;
  std::int64_t largest_content_bytes_ = 0;
};

}  // namespace penstock
