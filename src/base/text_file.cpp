#include "base/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "base/error.h"

namespace penstock {
namespace {

std::string reason(int error) {
  return std::generic_category().message(error);
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

void check_writable(const std::string& path, const std::string& option) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw UserError(fmt::format("{}: '{}' is a folder; name a file", option, path));
  }
  const std::string folder = folder_of(path);
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw UserError(fmt::format("{}: the folder '{}' does not exist; make it first", option, folder));
  }
  if (access(folder.c_str(), W_OK) != 0) {
    throw UserError(fmt::format("{}: the folder '{}' is not writable", option, folder));
  }
}

void write_file(const std::string& path, const std::string& text) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) throw RunError(fmt::format("cannot write '{}': {}", path, reason(errno)));
  int error = 0;
  for (std::size_t done = 0; done < text.size() && error == 0;) {
    const ssize_t count = write(file, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) error = errno;
    if (count > 0) done += static_cast<std::size_t>(count);
  }
  if (error == 0 && fsync(file) != 0 && errno != EINVAL) error = errno;
  if (close(file) != 0 && error == 0) error = errno;
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    unlink(temporary.c_str());
    throw RunError(fmt::format("cannot write '{}': {}", path, reason(error)));
  }
}

std::string read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf())) throw UserError(fmt::format("cannot read '{}'", path));
  return text.str();
}

}  // namespace penstock
