#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/files.h"

namespace penstock {
namespace {

bool is_of_kind(const std::string& path, FileKind kind) {
  FileStatus status;
  const int found = uninterrupted([&] { return files().status_at(path, true, status); });
  return found == 0 && status.kind == kind;
}

}  // namespace

bool file_exists(const std::string& path) {
  FileStatus status;
  return uninterrupted([&] { return files().status_at(path, true, status); }) == 0;
}

bool is_folder(const std::string& path) {
  return is_of_kind(path, FileKind::folder);
}

bool is_regular_file(const std::string& path) {
  return is_of_kind(path, FileKind::regular);
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string name_of(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string error_text(int error_number) {
  return std::generic_category().message(error_number < 0 ? -error_number : error_number);
}

void throw_file_error(const std::string& doing, int error_number) {
  const std::string text = fmt::format("{}: {}", doing, error_text(error_number));
  switch (error_number < 0 ? -error_number : error_number) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL:
    case ENXIO:
    case ETXTBSY:
      throw UserError(text);
    default:
      throw RunError(text);
  }
}

void make_folders(const std::string& path) {
  if (path.empty() || is_folder(path)) return;
  // A path may end in a slash: its last part is empty then.
  const std::filesystem::path full = std::filesystem::path(path).lexically_normal();
  const std::filesystem::path whole = full.has_filename() ? full : full.parent_path();
  const std::string above = whole.parent_path().string();
  if (!above.empty() && above != whole.string()) make_folders(above);
  const int result = uninterrupted([&] { return files().make_folder(whole.string()); });
  if (result != 0 && !(result == -EEXIST && is_folder(whole.string()))) {
    throw_file_error(fmt::format("cannot make the folder '{}'", path), result == -EEXIST ? ENOTDIR : result);
  }
  const int synced = sync_folder(above.empty() ? "." : above);
  if (synced != 0) throw_file_error(fmt::format("cannot make the folder '{}'", path), synced);
}

int sync_folder(const std::string& path) {
  const int folder = uninterrupted([&] { return files().open(path, O_RDONLY | O_DIRECTORY, 0); });
  // A folder may be writable without being readable.
  if (folder == -EACCES || folder == -EPERM) return 0;
  if (folder < 0) return folder;
  const int result = uninterrupted([&] { return files().sync(folder); });
  files().close(folder);
  const bool cannot = result == -EINVAL || result == -ENOTSUP || result == -ENOSYS || result == -EROFS;
  return cannot ? 0 : result;
}

}  // namespace penstock
