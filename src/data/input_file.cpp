#include "data/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace penstock {
namespace {

/// Text in a message is cut at this many bytes.
constexpr std::size_t kLongestText = 120;

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw UserError(fmt::format("cannot open {}: {}", path_, std::strerror(errno)));
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw UserError(fmt::format("{} is not a regular file", path_));
  }
  size_bytes_ = status.st_size;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_bytes_(other.size_bytes_) {}

InputFile& InputFile::operator=(InputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

void InputFile::read_at(std::int64_t offset_bytes, void* to, std::int64_t size_bytes) const {
  auto* at = static_cast<char*>(to);
  while (size_bytes > 0) {
    const ssize_t got = ::pread(descriptor_, at, static_cast<std::size_t>(size_bytes), offset_bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw RunError(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
    if (got == 0) {
      throw UserError(fmt::format("{} is cut short: it ends at byte {}, {} more are needed there", path_,
                                  offset_bytes, size_bytes));
    }
    at += got;
    offset_bytes += got;
    size_bytes -= got;
  }
}

std::string printable(std::string_view text) {
  std::string line(text.substr(0, kLongestText));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; },
      '?');
  if (text.size() > kLongestText) line += "...";
  return line;
}

}  // namespace penstock
