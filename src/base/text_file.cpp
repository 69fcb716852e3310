#include "base/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/files.h"

namespace penstock {
namespace {

/// A file open for reading from its beginning on.
class Reader {
 public:
  explicit Reader(const std::string& path)
      : path_(path), file_(uninterrupted([&] { return files().open(path, O_RDONLY | O_NOCTTY, 0); })) {
    if (file_ < 0) throw_file_error(fmt::format("cannot read '{}'", path), file_);
  }
  ~Reader() { files().close(file_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Bytes got, 0 at the end.
  std::int64_t read(char* to, std::int64_t size_bytes) {
    const std::int64_t got = uninterrupted([&] { return files().read(file_, to, size_bytes); });
    if (got < 0) throw_file_error(fmt::format("cannot read '{}'", path_), static_cast<int>(got));
    return got;
  }

 private:
  const std::string& path_;
  int file_;
};

std::string in_option(const std::string& option, const std::string& message) {
  return fmt::format("{}: {}", option, message);
}

/// Why no file can be made in a folder; empty if one can. Permission bits do not tell all: there are
/// read-only mounts and file systems that hold no files of ours.
std::string why_not_writable(const std::string& folder) {
  try {
    const AtomicFile trial(folder + "/penstock-trial");
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

}  // namespace

void check_writable(const std::string& path, const std::string& option) {
  if (is_folder(path)) throw UserError(fmt::format("{}: '{}' is a folder; name a file", option, path));
  WritePlace place;
  try {
    place = find_write_place(path);
  } catch (const std::runtime_error& error) {
    throw UserError(in_option(option, error.what()));
  }
  if (place.in_place) {
    if (uninterrupted([&] { return files().writable(place.path); }) != 0)
      throw UserError(fmt::format("{}: '{}' is not writable", option, path));
    return;
  }
  const std::string folder = folder_of(place.path);
  if (!is_folder(folder)) {
    throw UserError(fmt::format("{}: the folder '{}' does not exist; make it first", option, folder));
  }
  if (const std::string why = why_not_writable(folder); !why.empty())
    throw UserError(fmt::format("{}: the folder '{}' is not writable ({})", option, folder, why));
}

void check_writable_folder(const std::string& path, const std::string& option) {
  if (is_folder(path)) {
    if (const std::string why = why_not_writable(path); !why.empty())
      throw UserError(fmt::format("{}: the folder '{}' is not writable ({})", option, path, why));
    return;
  }
  FileStatus status;
  if (files().status_at(path, false, status) == 0) {
    throw UserError(fmt::format("{}: '{}' is not a folder; name one", option, path));
  }
  std::string above = folder_of(path);
  while (!file_exists(above) && above != folder_of(above)) above = folder_of(above);
  if (!is_folder(above)) throw UserError(fmt::format("{}: '{}' is not a folder", option, above));
  if (const std::string why = why_not_writable(above); !why.empty()) {
    throw UserError(fmt::format("{}: the folder '{}' cannot be made: '{}' is not writable ({})", option, path,
                                above, why));
  }
}

void write_file(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text.data(), static_cast<std::int64_t>(text.size()));
  file.commit();
}

std::string read_file(const std::string& path, std::int64_t limit_bytes) {
  if (is_folder(path)) throw UserError(fmt::format("cannot read '{}': it is a folder", path));
  constexpr std::int64_t kPieceBytes = 64 * kKiB;
  Reader reader(path);
  std::string text;
  while (true) {
    const std::size_t size = text.size();
    text.resize(size + static_cast<std::size_t>(kPieceBytes));
    const std::int64_t got = reader.read(text.data() + size, kPieceBytes);
    text.resize(size + static_cast<std::size_t>(got));
    if (got == 0) return text;
    if (static_cast<std::int64_t>(text.size()) > limit_bytes) {
      throw UserError(fmt::format("cannot read '{}': it is larger than {}, more than such a file can be",
                                  path, format_bytes(limit_bytes)));
    }
  }
}

}  // namespace penstock
