#include "support/files/memory_files.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

namespace penstock::testing {

int MemoryFiles::open(const std::string& path, int flags, unsigned /*mode*/) {
  if ((flags & O_ACCMODE) != O_RDONLY) return -EROFS;
  const auto found = files_.find(path);
  if (found == files_.end()) return -ENOENT;
  open_[next_] = {&found->second, 0};
  return next_++;
}

int MemoryFiles::close(int file) {
  return open_.erase(file) == 1 ? 0 : -EBADF;
}

std::int64_t MemoryFiles::read(int file, void* data, std::int64_t size_bytes) {
  const std::int64_t got = read_at(file, data, size_bytes, open_.at(file).position_bytes);
  open_.at(file).position_bytes += got;
  return got;
}

std::int64_t MemoryFiles::read_at(int file, void* data, std::int64_t size_bytes, std::int64_t offset_bytes) {
  const std::string& bytes = *open_.at(file).bytes;
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (offset_bytes < 0 || size_bytes < 0) return -EINVAL;
  const std::int64_t here = std::min(size_bytes, std::max<std::int64_t>(0, size - offset_bytes));
  if (here > 0) std::memcpy(data, bytes.data() + offset_bytes, static_cast<std::size_t>(here));
  return here;
}

std::int64_t MemoryFiles::write(int /*file*/, const void* /*data*/, std::int64_t /*size_bytes*/) {
  return -EROFS;
}

int MemoryFiles::status(int file, FileStatus& status) {
  status = {};
  status.size_bytes = static_cast<std::int64_t>(open_.at(file).bytes->size());
  return 0;
}

int MemoryFiles::status_at(const std::string& path, bool /*follow*/, FileStatus& status) {
  status = {};
  const auto found = files_.find(path);
  if (found != files_.end()) {
    status.size_bytes = static_cast<std::int64_t>(found->second.size());
    return 0;
  }
  const auto below = files_.lower_bound(path + "/");
  if (below == files_.end() || !below->first.starts_with(path + "/")) return -ENOENT;
  status.kind = FileKind::folder;
  return 0;
}

int MemoryFiles::list(const std::string& folder, std::vector<std::string>& names) {
  const std::string prefix = folder + "/";
  std::set<std::string> found;
  for (auto at = files_.lower_bound(prefix); at != files_.end() && at->first.starts_with(prefix); ++at) {
    const std::string rest = at->first.substr(prefix.size());
    found.insert(rest.substr(0, rest.find('/')));
  }
  names.insert(names.end(), found.begin(), found.end());
  return found.empty() ? -ENOENT : 0;
}

int MemoryFiles::writable(const std::string& /*path*/) {
  return -EROFS;
}

}  // namespace penstock::testing
