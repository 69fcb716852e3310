#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"

namespace penstock::testing {

/// Thrown in the middle of a call when the process is to be dead from there on.
struct Killed {};

/// What strikes the `at`-th call (from 0).
struct FileFault {
  enum class Kind {
    none,
    error,        ///< the call fails with `error_number` and does nothing
    short_count,  ///< a read or write moves half of its bytes; other calls are not touched
    kill,         ///< as kill -9: the call and all after it do nothing, and Killed is thrown
  };
  Kind kind = Kind::none;
  std::int64_t at = 0;
  int error_number = 0;
  bool lasting = false;  ///< every call from `at` on
};

/// Counts the calls that reach it and makes one of them, or all from one on, go wrong. Calls that look only
/// (status, list, read_link, writable) count as well. Passes on to `inner`. Any thread may call.
class FaultyFiles : public Files {
 public:
  explicit FaultyFiles(FileFault fault = {}, Files* inner = nullptr);

  int open(const std::string& path, int flags, unsigned mode) override;
  int close(int file) override;
  std::int64_t read(int file, void* data, std::int64_t size_bytes) override;
  std::int64_t read_at(int file, void* data, std::int64_t size_bytes, std::int64_t offset_bytes) override;
  std::int64_t write(int file, const void* data, std::int64_t size_bytes) override;
  int sync(int file) override;
  int lock(int file) override;
  int set_mode(int file, unsigned mode) override;
  int status(int file, FileStatus& status) override;
  int status_at(const std::string& path, bool follow, FileStatus& status) override;
  int read_link(const std::string& path, std::string& target) override;
  int writable(const std::string& path) override;
  int rename(const std::string& from, const std::string& to) override;
  int link(const std::string& from, const std::string& to) override;
  int remove(const std::string& path) override;
  int make_folder(const std::string& path) override;
  int list(const std::string& folder, std::vector<std::string>& names) override;

  std::int64_t calls() const;
  /// Whether the fault struck.
  bool struck() const;
  /// Files that are open.
  std::int64_t open_files() const;
  /// Closes what a killed process had open, as its end does.
  void bury();

 private:
  /// What the next call is to return in place of its own result: 0 for nothing. `throws`: Killed may pass
  /// through whoever calls.
  int strike(bool throws);
  std::int64_t shortened(std::int64_t size_bytes);

  FileFault fault_;
  Files* inner_;
  Files own_;
  mutable std::mutex mutex_;
  std::int64_t calls_ = 0;
  bool struck_ = false;
  bool dead_ = false;
  bool cut_next_ = false;
  std::set<int> open_;
};

}  // namespace penstock::testing
