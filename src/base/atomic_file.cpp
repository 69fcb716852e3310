#include "base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace penstock {
namespace {

constexpr std::string_view kMark = ".partial-";
constexpr std::size_t kRandomDigits = 16;
/// What file systems take as a name.
constexpr std::size_t kLongestName = 255;
constexpr int kMostLinks = 40;
constexpr int kMostTries = 100;

/// Two processes, threads or containers never get the same.
std::string random_digits() {
  static std::atomic<std::uint64_t> count{0};
  std::uint64_t value = 0;
  if (::getrandom(&value, sizeof(value), GRND_NONBLOCK) != sizeof(value)) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    value = static_cast<std::uint64_t>(now) * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(::getpid());
  }
  return fmt::format("{:016x}", value + ++count);
}

/// What the names of partial files for `path` begin with, without the folder.
std::string partial_prefix(const std::string& path) {
  const std::string name = name_of(path).substr(0, kLongestName - kMark.size() - kRandomDigits);
  return name + std::string(kMark);
}

bool is_partial_name(const std::string& name, const std::string& prefix) {
  if (name.size() != prefix.size() + kRandomDigits || !name.starts_with(prefix)) return false;
  return name.find_first_not_of("0123456789abcdef", prefix.size()) == std::string::npos;
}

/// Links in /proc (where /dev/stdout and /dev/fd/N lead) name open files: what they hold is no path.
bool is_of_process(const FileStatus& link) {
  FileStatus proc;
  return files().status_at("/proc", true, proc) == 0 && proc.device == link.device;
}

/// Whether another process could have removed the file between its making and its lock.
bool is_locked_by_us(int file) {
  const int locked = uninterrupted([&] { return files().lock(file); });
  if (locked == -EWOULDBLOCK) return false;
  // File systems without locks have no cleaning up either, which asks for the lock as well.
  FileStatus status;
  return files().status(file, status) != 0 || status.links > 0;
}

}  // namespace

WritePlace find_write_place(const std::string& path) {
  WritePlace place;
  place.path = path;
  for (int links = 0; links < kMostLinks; ++links) {
    FileStatus status;
    const int found = uninterrupted([&] { return files().status_at(place.path, false, status); });
    if (found == -ENOENT) return place;
    if (found != 0) throw_file_error(fmt::format("cannot write '{}'", path), found);
    if (status.kind == FileKind::folder) {
      throw UserError(fmt::format("cannot write '{}': it is a folder; name a file", path));
    }
    if (status.kind != FileKind::link || is_of_process(status)) {
      place.exists = true;
      place.in_place = status.kind != FileKind::regular;
      place.mode = status.mode;
      return place;
    }
    std::string target;
    const int read = uninterrupted([&] { return files().read_link(place.path, target); });
    if (read != 0) throw_file_error(fmt::format("cannot write '{}'", path), read);
    place.path = target.starts_with('/') ? target : folder_of(place.path) + "/" + target;
  }
  throw_file_error(fmt::format("cannot write '{}'", path), ELOOP);
}

void remove_leftovers(const std::string& path) {
  const std::string folder = folder_of(path);
  const std::string prefix = partial_prefix(path);
  std::vector<std::string> names;
  if (files().list(folder, names) != 0) return;
  for (const std::string& name : names) {
    if (!is_partial_name(name, prefix)) continue;
    const std::string leftover = fmt::format("{}/{}", folder, name);
    const int file = files().open(leftover, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
    if (file < 0) continue;
    FileStatus status;
    const bool regular = files().status(file, status) == 0 && status.kind == FileKind::regular;
    if (regular && files().lock(file) == 0) files().remove(leftover);
    files().close(file);
  }
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  const WritePlace place = find_write_place(path_);
  destination_ = place.path;
  if (place.in_place) {
    open_in_place();
    return;
  }
  remove_leftovers(destination_);
  make();
  if (place.exists) files().set_mode(file_, place.mode);
}

void AtomicFile::open_in_place() {
  file_ = uninterrupted([&] { return files().open(destination_, O_WRONLY | O_APPEND | O_NOCTTY, 0); });
  if (file_ < 0) fail(file_);
}

void AtomicFile::make() {
  const std::string prefix = folder_of(destination_) + "/" + partial_prefix(destination_);
  // A replaced file may be secret: the new one is not open to all even for a moment.
  FileStatus old;
  const bool exists = files().status_at(destination_, false, old) == 0;
  const unsigned mode = exists ? old.mode & 0777U : 0666U;
  for (int tries = 0; tries < kMostTries; ++tries) {
    std::string name = prefix + random_digits();
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    const int file = uninterrupted([&] { return files().open(name, flags, mode); });
    if (file == -EEXIST) continue;
    if (file < 0) fail(file);
    file_ = file;
    temporary_ = std::move(name);  // A copy might fail, and then nobody would remove the file.
    if (is_locked_by_us(file)) return;
    files().close(std::exchange(file_, -1));
  }
  fail(EEXIST);
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  // Nobody else looks after it, so a removal that fails is tried once more.
  const auto remove = [&] { return uninterrupted([&] { return files().remove(temporary_); }) == 0; };
  if (!temporary_.empty() && !remove()) remove();
  files().close(file_);
}

void AtomicFile::fail(int error_number) const {
  throw_file_error(fmt::format("cannot write '{}'", path_), error_number);
}

void AtomicFile::write(const void* data, std::int64_t size_bytes) {
  require(file_ >= 0, "a file is written that is not open");
  const auto* at = static_cast<const char*>(data);
  while (size_bytes > 0) {
    const std::int64_t put = uninterrupted([&] { return files().write(file_, at, size_bytes); });
    if (put < 0)
      throw RunError(fmt::format("cannot write '{}': {}", path_, error_text(static_cast<int>(put))));
    if (put == 0) throw RunError(fmt::format("cannot write '{}': the device takes no more", path_));
    at += put;
    size_bytes -= put;
  }
}

void AtomicFile::sync() {
  require(file_ >= 0, "a file is synced that is not open");
  const int result = uninterrupted([&] { return files().sync(file_); });
  // Devices and some file systems have nothing to sync.
  if (result == 0 || result == -EINVAL || result == -ENOTSUP || result == -ENOSYS || result == -EROFS) return;
  throw RunError(fmt::format("cannot write '{}': {}", path_, error_text(result)));
}

void AtomicFile::commit() {
  sync();
  if (!temporary_.empty()) {
    const int renamed = uninterrupted([&] { return files().rename(temporary_, destination_); });
    if (renamed != 0) fail(renamed);
  }
  const bool is_new = !std::exchange(temporary_, std::string()).empty();
  const int closed = files().close(std::exchange(file_, -1));
  // Network file systems may report here what they could not write before.
  if (closed != 0 && closed != -EINTR) fail(closed);
  const int synced = is_new ? sync_folder(folder_of(destination_)) : 0;
  if (synced != 0) throw RunError(fmt::format("cannot write '{}': {}", path_, error_text(synced)));
}

}  // namespace penstock
