#include "data/files.h"

#include <stdlib.h>
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace penstock::testing {

namespace fs = std::filesystem;

TempFolder::TempFolder() {
  std::string pattern = (fs::temp_directory_path() / "penstock-data-XXXXXX").string();
  require(mkdtemp(pattern.data()) != nullptr, "cannot make a temporary folder");
  path_ = pattern;
}

TempFolder::~TempFolder() {
  fs::remove_all(path_);
}

std::string TempFolder::operator/(const std::string& name) const {
  const fs::path full = fs::path(path_) / name;
  fs::create_directories(full.parent_path());
  return full.string();
}

std::vector<std::string> TempFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

void write_file(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void write_gzip(const std::string& path, std::string_view bytes) {
  gzFile file = gzopen(path.c_str(), "wb");
  require(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) == static_cast<int>(bytes.size()),
          "gzip");
  gzclose(file);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void cut_file(const std::string& path, std::int64_t bytes) {
  fs::resize_file(path, static_cast<std::uintmax_t>(bytes));
}

namespace {

std::string word(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xff);
  return text;
}

}  // namespace

std::string idx_images(std::uint32_t count, std::uint32_t height, std::uint32_t width) {
  std::string text = word(0x803) + word(count) + word(height) + word(width);
  for (std::uint32_t i = 0; i < count * height * width; ++i) text += static_cast<char>(i % 251);
  return text;
}

std::string idx_labels(const std::string& labels) {
  return word(0x801) + word(static_cast<std::uint32_t>(labels.size())) + labels;
}

std::string npy(const std::string& type, const std::string& shape, std::string_view data,
                bool fortran_order) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': " + (fortran_order ? "True" : "False") +
                       ", 'shape': " + shape + ", }";
  header.resize((header.size() + 10 + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  return text + header + std::string(data);
}

Picture flat_picture(int width, int height, std::vector<std::uint8_t> colour) {
  Picture picture{width, height, static_cast<int>(colour.size()), {}};
  for (int i = 0; i < width * height; ++i) {
    picture.bytes.insert(picture.bytes.end(), colour.begin(), colour.end());
  }
  return picture;
}

}  // namespace penstock::testing
