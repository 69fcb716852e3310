#include "base/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "base/files.h"

namespace penstock {

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  descriptor_ = uninterrupted([&] { return files().open(path_, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0); });
  if (descriptor_ < 0) throw_file_error(fmt::format("cannot open {}", path_), descriptor_);
  FileStatus status;
  const int result = uninterrupted([&] { return files().status(descriptor_, status); });
  if (result == 0 && status.kind == FileKind::regular) {
    size_bytes_ = status.size_bytes;
    return;
  }
  files().close(std::exchange(descriptor_, -1));
  if (result != 0) throw_file_error(fmt::format("cannot open {}", path_), result);
  throw UserError(fmt::format("{} is not a regular file", path_));
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) files().close(descriptor_);
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

std::int64_t InputFile::try_read_at(std::int64_t offset_bytes, void* to,
                                    std::int64_t size_bytes) const noexcept {
  auto* at = static_cast<char*>(to);
  std::int64_t done = 0;
  while (done < size_bytes) {
    const std::int64_t got = uninterrupted(
        [&] { return files().read_at(descriptor_, at + done, size_bytes - done, offset_bytes + done); });
    if (got < 0) return got;
    if (got == 0) break;
    done += got;
  }
  return done;
}

void InputFile::read_at(std::int64_t offset_bytes, void* to, std::int64_t size_bytes) const {
  const std::int64_t got = try_read_at(offset_bytes, to, size_bytes);
  if (got < 0) throw RunError(fmt::format("cannot read {}: {}", path_, error_text(static_cast<int>(got))));
  if (got < size_bytes) {
    throw UserError(fmt::format("{} is cut short: it ends at byte {}, {} more are needed there", path_,
                                offset_bytes + got, size_bytes - got));
  }
}

}  // namespace penstock
