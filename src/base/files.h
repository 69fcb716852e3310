#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {

enum class FileKind { regular, folder, link, other };

/// What the operating system tells of a file.
struct FileStatus {
  FileKind kind = FileKind::regular;
  std::int64_t size_bytes = 0;
  unsigned mode = 0;  ///< permission bits
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t links = 0;  ///< names that it has
};

/// Every call of the operating system on files that have a name and are read or written by it: data,
/// checkpoints, weights, results, plans, profiles. (The swap file has no name; tier/file_io.h is for that.)
/// Tests put another one in its place that fails, stops or keeps files in memory. Results are those of the
/// calls, with -errno for a failure; EINTR and short counts are for the caller to overcome. Any thread may
/// call.
class Files {
 public:
  Files() = default;
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  virtual ~Files() = default;

  /// `flags` as of open(2); close-on-exec is added.
  virtual int open(const std::string& path, int flags, unsigned mode);
  virtual int close(int file);
  /// From where the last one ended.
  virtual std::int64_t read(int file, void* data, std::int64_t size_bytes);
  virtual std::int64_t read_at(int file, void* data, std::int64_t size_bytes, std::int64_t offset_bytes);
  virtual std::int64_t write(int file, const void* data, std::int64_t size_bytes);
  /// The file's bytes, or a folder's names, outlast a power cut from now on.
  virtual int sync(int file);
  /// For this process alone, until the file is closed; does not wait.
  virtual int lock(int file);
  virtual int set_mode(int file, unsigned mode);
  virtual int status(int file, FileStatus& status);

  /// Of what stands at the path, or with `follow` of what a link there leads to.
  virtual int status_at(const std::string& path, bool follow, FileStatus& status);
  virtual int read_link(const std::string& path, std::string& target);
  /// 0 if this process may write there.
  virtual int writable(const std::string& path);
  virtual int rename(const std::string& from, const std::string& to);
  /// A second name for a file.
  virtual int link(const std::string& from, const std::string& to);
  virtual int remove(const std::string& path);
  virtual int make_folder(const std::string& path);
  /// Names in a folder, in no order, without . and ..
  virtual int list(const std::string& folder, std::vector<std::string>& names);
};

/// The one in use.
Files& files();

/// Puts another one in its place for as long as it lives; for tests.
class FilesReplaced {
 public:
  explicit FilesReplaced(Files& by);
  ~FilesReplaced();
  FilesReplaced(const FilesReplaced&) = delete;
  FilesReplaced& operator=(const FilesReplaced&) = delete;

 private:
  Files* before_;
};

/// Whether there is anything at the path, and whether it is a folder or a regular file; links are followed.
/// What cannot be looked at is not there.
bool file_exists(const std::string& path);
bool is_folder(const std::string& path);
bool is_regular_file(const std::string& path);

/// The folder that a path lies in: "." if it names none.
std::string folder_of(const std::string& path);
/// The last part of a path.
std::string name_of(const std::string& path);

/// Makes a folder and those above it, so that they outlast a power cut. Throws UserError if that is not
/// permitted, RunError if the disk fails.
void make_folders(const std::string& path);

/// Syncs the names in a folder; file systems that cannot do that are left alone. 0 or -errno.
int sync_folder(const std::string& path);

/// "No space left on device" for ENOSPC or -ENOSPC.
std::string error_text(int error_number);

/// Throws UserError if the error is one that the user can mend by another path or permission, else RunError;
/// `doing` begins the message: "cannot write x".
[[noreturn]] void throw_file_error(const std::string& doing, int error_number);

/// Repeats a call that a signal interrupted.
template <typename Call>
auto uninterrupted(const Call& call) {
  constexpr int kInterrupted = -4;  // -EINTR
  auto result = call();
  while (result == kInterrupted) result = call();
  return result;
}

}  // namespace penstock
