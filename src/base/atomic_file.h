#pragma once

#include <cstdint>
#include <string>

namespace penstock {

/// A file that is written as a whole: readers see the old one or the new one, and a failure, a kill or a
/// power cut leaves the old one.
///
/// The bytes go to NAME.partial-RANDOM in the same folder, made anew and locked; commit() syncs it, renames
/// it and syncs the folder. What a killed process left of such files is removed by the next one that writes
/// the same NAME: the lock tells whether the writer lives. Where the path is a link, the file that it leads
/// to is replaced and the link stays. What is not a regular file (a terminal, /dev/null, a pipe) is written
/// into, since it cannot be replaced. A replaced file's permissions stay. One thread.
class AtomicFile {
 public:
  /// Throws UserError if no file can be made there, RunError if the disk fails.
  explicit AtomicFile(std::string path);
  /// Without commit() nothing is left behind.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws RunError, say if the disk is full.
  void write(const void* data, std::int64_t size_bytes);
  /// Syncs the bytes and does not yet give them the name.
  void sync();
  /// The file has its name from now on, also after a power cut. Throws RunError.
  void commit();

 private:
  void make();
  void open_in_place();
  [[noreturn]] void fail(int error_number) const;

  std::string path_;         ///< as the user says it
  std::string destination_;  ///< behind links
  std::string temporary_;    ///< empty where it is written in place
  int file_ = -1;
};

/// Where writing to a path ends up.
struct WritePlace {
  std::string path;       ///< behind links
  bool in_place = false;  ///< not a regular file: it is written into
  unsigned mode = 0666;   ///< permissions for the new file
  bool exists = false;
};

/// Throws UserError that begins with `path` if it is a folder or a loop of links.
WritePlace find_write_place(const std::string& path);

/// Removes what killed processes left of files that were to be called `path`.
void remove_leftovers(const std::string& path);

}  // namespace penstock
