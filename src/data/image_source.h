#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/input_file.h"

namespace penstock {

/// The bytes of an image file from its beginning on, for decoders written in C: nothing is thrown, and a
/// failing disk is told apart from a file that ends. One thread.
class ImageSource {
 public:
  explicit ImageSource(InputFile file) : file_(std::move(file)) {}

  const std::string& path() const { return file_.path(); }
  std::int64_t size_bytes() const { return file_.size_bytes(); }

  /// Bytes got: fewer than asked at the end of the file, or when the disk failed.
  std::int64_t read(void* to, std::int64_t size_bytes) noexcept {
    const std::int64_t got = file_.try_read_at(position_bytes_, to, size_bytes);
    if (got < 0) error_number_ = static_cast<int>(-got);
    position_bytes_ += got > 0 ? got : 0;
    return got > 0 ? got : 0;
  }
  void skip(std::int64_t size_bytes) noexcept { position_bytes_ += size_bytes; }
  void rewind() noexcept { position_bytes_ = 0; }
  /// errno of a read that failed, or 0.
  int error_number() const noexcept { return error_number_; }

 private:
  InputFile file_;
  std::int64_t position_bytes_ = 0;
  int error_number_ = 0;
};

}  // namespace penstock
