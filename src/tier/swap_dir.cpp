#include "tier/swap_dir.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/bytes.h"
#include "base/error.h"
#include "base/nameless_file.h"

namespace penstock {

bool is_writable_directory(const std::string& directory) {
  // Permission bits do not tell all: there are read-only mounts, and file systems that hold no files of ours.
  const int descriptor = open_nameless_file(directory, 0);
  if (descriptor < 0) return false;
  ::close(descriptor);
  return true;
}

std::int64_t free_disk_bytes(const std::string& directory) {
  struct statvfs status {};
  if (::statvfs(directory.c_str(), &status) != 0) return 0;
  const double bytes = static_cast<double>(status.f_bavail) * static_cast<double>(status.f_frsize);
  return bytes > 9e18 ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(bytes);
}

std::string first_swap_dir(const std::vector<std::string>& candidates) {
  for (const std::string& candidate : candidates) {
    if (is_writable_directory(candidate) && !is_memory_filesystem(candidate)) return candidate;
  }
  throw UserError("no directory on disk to swap to was found; name a swap folder");
}

std::string default_swap_dir() {
  std::vector<std::string> candidates;
  if (const char* chosen = std::getenv("TMPDIR"); chosen != nullptr && *chosen != '\0')
    candidates.emplace_back(chosen);
  for (const char* usual : {"/var/tmp", "/tmp", "."}) candidates.emplace_back(usual);
  return first_swap_dir(candidates);
}

std::string check_swap_dir(const std::string& directory, std::int64_t needed_bytes) {
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) {
    throw UserError(
        fmt::format("swap folder '{}': {}; name a directory that exists", directory, std::strerror(errno)));
  }
  if (!S_ISDIR(status.st_mode))
    throw UserError(fmt::format("swap folder '{}' is not a directory", directory));
  if (!is_writable_directory(directory)) {
    throw UserError(fmt::format("swap folder '{}' is not writable; name another", directory));
  }
  const std::int64_t free_bytes = free_disk_bytes(directory);
  if (needed_bytes > free_bytes) {
    throw UserError(
        fmt::format("swap folder '{}' has too little space: needed {}, there {}; free some or name another",
                    directory, format_bytes(needed_bytes), format_bytes(free_bytes)));
  }
  if (is_memory_filesystem(directory)) {
    return fmt::format(
        "swap folder '{}' is in memory (tmpfs): what is swapped there takes memory outside the budget",
        directory);
  }
  return {};
}

}  // namespace penstock
