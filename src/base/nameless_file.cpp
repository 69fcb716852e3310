#include "base/nameless_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace penstock {

int open_nameless_file(const std::string& directory, int extra_flags) {
  const int flags = O_RDWR | O_CLOEXEC | extra_flags;
  int descriptor = ::open(directory.c_str(), flags | O_TMPFILE | O_EXCL, 0600);
  if (descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return descriptor;
  std::string name = directory + "/penstock-swap-XXXXXX";
  descriptor = ::mkostemp(name.data(), O_CLOEXEC | extra_flags);
  if (descriptor >= 0) ::unlink(name.c_str());
  return descriptor;
}

bool is_memory_filesystem(const std::string& directory) {
  struct statfs status {};
  if (::statfs(directory.c_str(), &status) != 0) return false;
  return status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC;
}

}  // namespace penstock
