#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>

namespace penstock {
namespace {

std::int64_t result_of(std::int64_t result) {
  return result < 0 ? -errno : result;
}

int code_of(int result) {
  return result < 0 ? -errno : result;
}

FileStatus told(const struct stat& status) {
  FileStatus told;
  told.kind = S_ISREG(status.st_mode)   ? FileKind::regular
              : S_ISDIR(status.st_mode) ? FileKind::folder
              : S_ISLNK(status.st_mode) ? FileKind::link
                                        : FileKind::other;
  told.size_bytes = status.st_size;
  told.mode = status.st_mode & 07777U;
  told.device = status.st_dev;
  told.inode = status.st_ino;
  told.links = status.st_nlink;
  return told;
}

Files& operating_system() {
  static Files calls;
  return calls;
}

std::atomic<Files*>& in_use() {
  static std::atomic<Files*> calls{&operating_system()};
  return calls;
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

int Files::open(const std::string& path, int flags, unsigned mode) {
  return code_of(::open(path.c_str(), flags | O_CLOEXEC, mode));
}

int Files::close(int file) {
  return code_of(::close(file));
}

std::int64_t Files::read(int file, void* data, std::int64_t size_bytes) {
  return result_of(::read(file, data, static_cast<std::size_t>(size_bytes)));
}

std::int64_t Files::read_at(int file, void* data, std::int64_t size_bytes, std::int64_t offset_bytes) {
  return result_of(::pread(file, data, static_cast<std::size_t>(size_bytes), offset_bytes));
}

std::int64_t Files::write(int file, const void* data, std::int64_t size_bytes) {
  return result_of(::write(file, data, static_cast<std::size_t>(size_bytes)));
}

int Files::sync(int file) {
  return code_of(::fsync(file));
}

int Files::lock(int file) {
  return code_of(::flock(file, LOCK_EX | LOCK_NB));
}

int Files::set_mode(int file, unsigned mode) {
  return code_of(::fchmod(file, mode));
}

int Files::status(int file, FileStatus& status) {
  struct stat found {};
  const int result = code_of(::fstat(file, &found));
  if (result == 0) status = told(found);
  return result;
}

int Files::status_at(const std::string& path, bool follow, FileStatus& status) {
  struct stat found {};
  const int result = code_of(::fstatat(AT_FDCWD, path.c_str(), &found, follow ? 0 : AT_SYMLINK_NOFOLLOW));
  if (result == 0) status = told(found);
  return result;
}

int Files::read_link(const std::string& path, std::string& target) {
  std::array<char, 4096> text;
  const std::int64_t length = result_of(::readlink(path.c_str(), text.data(), text.size()));
  if (length < 0) return static_cast<int>(length);
  target.assign(text.data(), static_cast<std::size_t>(length));
  return 0;
}

int Files::writable(const std::string& path) {
  return code_of(::access(path.c_str(), W_OK));
}

int Files::rename(const std::string& from, const std::string& to) {
  return code_of(std::rename(from.c_str(), to.c_str()));
}

int Files::link(const std::string& from, const std::string& to) {
  return code_of(::link(from.c_str(), to.c_str()));
}

int Files::remove(const std::string& path) {
  return code_of(::unlink(path.c_str()));
}

int Files::make_folder(const std::string& path) {
  return code_of(::mkdir(path.c_str(), 0777));
}

int Files::list(const std::string& folder, std::vector<std::string>& names) {
  const std::unique_ptr<DIR, CloseFolder> stream(::opendir(folder.c_str()));
  if (!stream) return -errno;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) return -errno;
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

Files& files() {
  return *in_use().load();
}

FilesReplaced::FilesReplaced(Files& by) : before_(in_use().exchange(&by)) {}

FilesReplaced::~FilesReplaced() {
  in_use().store(before_);
}

}  // namespace penstock
