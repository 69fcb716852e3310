#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace penstock::testing {

/// A folder of a test's own, removed with all it holds.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Path of a name below the folder; makes the folders between.
  std::string operator/(const std::string& name) const;
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

void write_file(const std::string& path, std::string_view bytes);
void write_gzip(const std::string& path, std::string_view bytes);
std::string read_file(const std::string& path);
/// Cuts a file to its first `bytes`.
void cut_file(const std::string& path, std::int64_t bytes);

/// IDX of images [count, height, width] with pixel i = i % 251.
std::string idx_images(std::uint32_t count, std::uint32_t height, std::uint32_t width);
std::string idx_labels(const std::string& labels);

/// The text of a .npy file of version 1 with the given data.
std::string npy(const std::string& type, const std::string& shape, std::string_view data,
                bool fortran_order = false);
template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// An image in memory, `channels` bytes side by side for each pixel.
struct Picture {
  int width;
  int height;
  int channels;
  std::vector<std::uint8_t> bytes;
};
/// All pixels of one colour.
Picture flat_picture(int width, int height, std::vector<std::uint8_t> colour);

struct PngOptions {
  /// PNG_COLOR_TYPE_*; -1 takes what the channels say (1 grey, 2 grey + alpha, 3 RGB, 4 RGBA).
  int colour_type = -1;
  int bit_depth = 8;
  bool interlaced = false;
};
void write_png(const std::string& path, const Picture& picture, const PngOptions& options = {});

enum class JpegKind { baseline, progressive, cmyk };
void write_jpeg(const std::string& path, const Picture& picture, JpegKind kind = JpegKind::baseline);

/// The message of the UserError that `call` throws; "" if it throws none. A message is one line.
template <typename Call>
std::string user_error(Call call) {
  try {
    call();
  } catch (const UserError& error) {
    const std::string message = error.what();
    return message.find('\n') == std::string::npos ? message : "more than one line: " + message;
  }
  return "";
}

}  // namespace penstock::testing
