#pragma once

#include <string>

#include "base/error.h"
#include "support/files/memory_files.h"

namespace penstock::fuzz {

/// Files in memory for as long as it lives; all must be closed at its end.
class MemoryFolder {
 public:
  MemoryFolder() : replaced_(files_) {}
  void put(const std::string& path, const std::string& bytes) { files_.put(path, bytes); }
  /// To be called when all that reads is gone.
  void check_closed() const { require(files_.open_files() == 0, "a file is left open"); }

 private:
  testing::MemoryFiles files_;
  FilesReplaced replaced_;
};

/// Runs `read` on the folder; whatever it throws, no file is open afterwards.
template <typename Read>
void read_all(const MemoryFolder& folder, const Read& read) {
  try {
    read();
  } catch (const std::runtime_error&) {
    folder.check_closed();
    throw;
  }
  folder.check_closed();
}

}  // namespace penstock::fuzz
