#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"

namespace penstock::testing {

/// Files that are in memory alone and can only be read. One thread.
class MemoryFiles final : public Files {
 public:
  /// Folders are what paths have before their slashes.
  void put(const std::string& path, std::string bytes) { files_[path] = std::move(bytes); }
  void clear() {
    files_.clear();
    open_.clear();
  }
  std::int64_t open_files() const { return static_cast<std::int64_t>(open_.size()); }

  int open(const std::string& path, int flags, unsigned mode) override;
  int close(int file) override;
  std::int64_t read(int file, void* data, std::int64_t size_bytes) override;
  std::int64_t read_at(int file, void* data, std::int64_t size_bytes, std::int64_t offset_bytes) override;
  std::int64_t write(int file, const void* data, std::int64_t size_bytes) override;
  int status(int file, FileStatus& status) override;
  int status_at(const std::string& path, bool follow, FileStatus& status) override;
  int list(const std::string& folder, std::vector<std::string>& names) override;
  int writable(const std::string& path) override;

 private:
  struct Open {
    const std::string* bytes;
    std::int64_t position_bytes;
  };
  std::map<std::string, std::string> files_;
  std::map<int, Open> open_;
  int next_ = 1 << 20;
};

}  // namespace penstock::testing
