#include "support/files/power_cut_files.h"

#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace penstock::testing {
namespace {

namespace fs = std::filesystem;

std::string contents(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace

PowerCutFiles::PowerCutFiles(std::string root) : root_(std::move(root)) {
  remember(root_);
}

PowerCutFiles::Names PowerCutFiles::names_now(const std::string& folder) {
  Names names;
  std::vector<std::string> list;
  Files::list(folder, list);
  for (const std::string& name : list) {
    FileStatus status;
    if (Files::status_at(folder + "/" + name, false, status) != 0) continue;
    names[name] = status.kind == FileKind::folder ? 0 : status.inode;
  }
  return names;
}

void PowerCutFiles::remember(const std::string& folder) {
  names_[folder] = names_now(folder);
  for (const auto& [name, inode] : names_[folder]) {
    const std::string path = folder + "/" + name;
    if (inode == 0) {
      remember(path);
    } else {
      bytes_[inode] = contents(path);
    }
  }
}

int PowerCutFiles::open(const std::string& path, int flags, unsigned mode) {
  const int file = Files::open(path, flags, mode);
  if (file < 0) return file;
  open_[file] = path;
  FileStatus status;
  // A new file may get the number of one that is gone.
  if ((flags & O_EXCL) != 0 && Files::status(file, status) == 0) bytes_.erase(status.inode);
  return file;
}

int PowerCutFiles::close(int file) {
  open_.erase(file);
  return Files::close(file);
}

int PowerCutFiles::sync(int file) {
  FileStatus status;
  Files::status(file, status);
  if (status.kind == FileKind::folder) {
    names_[fs::path(open_.at(file)).lexically_normal().string()] = names_now(open_.at(file));
  } else {
    bytes_[status.inode] = contents("/proc/self/fd/" + std::to_string(file));
  }
  return Files::sync(file);
}

void PowerCutFiles::lay_out(const std::string& folder, Loss loss, std::map<std::string, std::string>& files,
                            std::vector<std::string>& folders) {
  const Names names = loss == Loss::all ? names_[folder] : names_now(folder);
  for (const auto& [name, inode] : names) {
    const std::string path = folder + "/" + name;
    if (inode == 0) {
      folders.push_back(path);
      lay_out(path, loss, files, folders);
    } else {
      files[path] = bytes_[inode];
    }
  }
}

void PowerCutFiles::cut(Loss loss) {
  std::map<std::string, std::string> files;
  std::vector<std::string> folders;
  lay_out(root_, loss, files, folders);
  for (const auto& entry : fs::directory_iterator(root_)) fs::remove_all(entry.path());
  for (const std::string& folder : folders) fs::create_directory(folder);
  for (const auto& [path, bytes] : files) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
}

}  // namespace penstock::testing
